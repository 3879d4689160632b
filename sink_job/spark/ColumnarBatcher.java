package s3sink;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Converts the Kafka records of a task to columnar batches: rows of many records each, as binary columns.
 *
 * Spark needs a microsecond per row, which is most of the cost of a small record; a columnar batch is one row.
 * columnar_batch.py reads its columns as the buffers of Arrow arrays. Runs in the executors.
 */
public class ColumnarBatcher extends AbstractFunction1 implements Serializable {
    private static final long serialVersionUID = 1L;
    private int batchBytes;
    private boolean timestamps;
    private boolean keys;
    private boolean headers;
    private boolean timestampTypes;

    /** batchBytes: the maximum size of a batch. The others: the columns in addition to offset and value. */
    public ColumnarBatcher of(
            int batchBytes, boolean timestamps, boolean keys, boolean headers, boolean timestampTypes) {
        ColumnarBatcher batcher = new ColumnarBatcher();
        batcher.batchBytes = batchBytes;
        batcher.timestamps = timestamps;
        batcher.keys = keys;
        batcher.headers = headers;
        batcher.timestampTypes = timestampTypes;
        return batcher;
    }

    public Object apply(Object records) {
        return new BatchIterator((Iterator) records, batchBytes, timestamps, keys, headers, timestampTypes);
    }

    /** The columns of a batch. Every array has `records` elements; bytes after them are undefined. */
    public StructType schema() {
        StructType schema = new StructType()
            .add("topic", DataTypes.StringType)
            .add("partition", DataTypes.IntegerType)
            .add("records", DataTypes.IntegerType);
        schema = binary(schema, "offsets");
        schema = strings(schema, "value");
        if (timestamps) {
            schema = binary(schema, "timestamps");
        }
        if (keys) {
            schema = strings(schema, "key");
        }
        if (headers) {
            schema = binary(binary(schema, "headers_valid"), "headers_bounds");
            schema = strings(strings(schema, "header_key"), "header_value");
        }
        if (timestampTypes) {
            schema = binary(schema, "timestamp_types");
        }
        return schema;
    }

    private static StructType strings(StructType schema, String name) {
        return binary(binary(binary(schema, name + "_valid"), name + "_bounds"), name + "_bytes");
    }

    private static StructType binary(StructType schema, String name) {
        return schema.add(name, DataTypes.BinaryType);
    }
}

/** The batches of a task. A batch has records of one topic-partition. A row is valid until the next call of next. */
class BatchIterator extends AbstractIterator {
    /** Bytes of a batch for each record, if an envelope of a few hundred bytes is written around its value. */
    private static final int ENVELOPED = 128;
    private final Iterator records;
    private final int batchBytes;
    private final int batchRecords;
    private final BinaryColumn values;
    private final BinaryColumn keys;
    private final BinaryColumn headerKeys;
    private final BinaryColumn headerValues;
    private final Bits headerless;
    private final Object[] row;
    private long[] offsets = new long[1024];
    private long[] timestamps;
    private int[] headerBounds;
    private byte[] timestampTypes;
    private int count;
    private ConsumerRecord ahead;

    BatchIterator(
            Iterator records,
            int batchBytes,
            boolean timestamps,
            boolean keys,
            boolean headers,
            boolean timestampTypes) {
        this.records = records;
        this.batchBytes = batchBytes;
        this.batchRecords = batchBytes / (timestampTypes ? ENVELOPED : 16);
        this.values = new BinaryColumn(batchBytes);
        this.timestamps = timestamps ? new long[1024] : null;
        this.keys = keys ? new BinaryColumn(batchBytes) : null;
        this.headerBounds = headers ? new int[1024] : null;
        this.headerKeys = headers ? new BinaryColumn(batchBytes) : null;
        this.headerValues = headers ? new BinaryColumn(batchBytes) : null;
        this.headerless = headers ? new Bits() : null;
        this.timestampTypes = timestampTypes ? new byte[1024] : null;
        this.row = new Object[
            7 + (timestamps ? 1 : 0) + (keys ? 3 : 0) + (headers ? 8 : 0) + (timestampTypes ? 1 : 0)];
    }

    public boolean hasNext() {
        return ahead != null || records.hasNext();
    }

    public Object next() {
        ConsumerRecord first = ahead != null ? ahead : (ConsumerRecord) records.next();
        ahead = null;
        clear();
        add(first);
        while (records.hasNext()) {
            ConsumerRecord record = (ConsumerRecord) records.next();
            if (isFull(record) || record.partition() != first.partition() || !record.topic().equals(first.topic())) {
                ahead = record;
                break;
            }
            add(record);
        }
        return batch(first);
    }

    private boolean isFull(ConsumerRecord record) {
        return count >= batchRecords
            || !values.hasRoom((byte[]) record.value())
            || keys != null && !keys.hasRoom((byte[]) record.key())
            || headerKeys != null && headerKeys.size + headerValues.size >= batchBytes;
    }

    private void clear() {
        count = 0;
        values.clear();
        if (keys != null) {
            keys.clear();
        }
        if (headerKeys != null) {
            headerKeys.clear();
            headerValues.clear();
            headerless.clear();
        }
    }

    private void add(ConsumerRecord record) {
        if (count == offsets.length) {
            offsets = Arrays.copyOf(offsets, 2 * count);
            timestamps = timestamps == null ? null : Arrays.copyOf(timestamps, 2 * count);
            timestampTypes = timestampTypes == null ? null : Arrays.copyOf(timestampTypes, 2 * count);
        }
        offsets[count] = record.offset();
        values.add((byte[]) record.value());
        if (timestamps != null) {
            timestamps[count] = record.timestamp();
        }
        if (keys != null) {
            keys.add((byte[]) record.key());
        }
        if (headerKeys != null) {
            addHeaders(record.headers().toArray());
        }
        if (timestampTypes != null) {
            timestampTypes[count] = (byte) record.timestampType().id;
        }
        count++;
    }

    private void addHeaders(Header[] headers) {
        for (int i = 0; i < headers.length; i++) {
            headerKeys.add(headers[i].key().getBytes(StandardCharsets.UTF_8));
            headerValues.add(headers[i].value());
        }
        if (headers.length == 0) {
            headerless.set(count);
        }
        if (count + 1 >= headerBounds.length) {
            headerBounds = Arrays.copyOf(headerBounds, 2 * headerBounds.length);
        }
        headerBounds[count + 1] = headerKeys.count;
    }

    private InternalRow batch(ConsumerRecord first) {
        row[0] = UTF8String.fromString(first.topic());
        row[1] = Integer.valueOf(first.partition());
        row[2] = Integer.valueOf(count);
        row[3] = Bytes.of(offsets, count);
        int column = values.put(row, 4);
        if (timestamps != null) {
            row[column++] = Bytes.of(timestamps, count);
        }
        if (keys != null) {
            column = keys.put(row, column);
        }
        if (headerKeys != null) {
            row[column++] = headerless.complement(count);
            row[column++] = Bytes.of(headerBounds, count + 1);
            column = headerKeys.put(row, column);
            column = headerValues.put(row, column);
        }
        if (timestampTypes != null) {
            row[column] = Arrays.copyOf(timestampTypes, count);
        }
        return new GenericInternalRow(row);
    }
}

/** A column of byte strings, which may be null. */
class BinaryColumn {
    private final int capacity;
    private final Bits nulls = new Bits();
    private byte[] bytes;
    private int[] bounds = new int[1024];
    int count;
    int size;

    BinaryColumn(int capacity) {
        this.capacity = capacity;
    }

    boolean hasRoom(byte[] value) {
        return value == null || value.length <= capacity - size;
    }

    void add(byte[] value) {
        if (value == null) {
            nulls.set(count);
        } else {
            int length = value.length;
            if (bytes == null || length > bytes.length - size) {
                grow(size + length);
            }
            System.arraycopy(value, 0, bytes, size, length);
            size += length;
        }
        if (++count == bounds.length) {
            bounds = Arrays.copyOf(bounds, 2 * count);
        }
        bounds[count] = size;
    }

    private void grow(int needed) {
        byte[] larger = new byte[Math.max(needed, Math.min(capacity, 8 * needed))];
        if (size > 0) {
            System.arraycopy(bytes, 0, larger, 0, size);
        }
        bytes = larger;
    }

    int put(Object[] row, int column) {
        row[column] = nulls.complement(count);
        row[column + 1] = Bytes.of(bounds, count + 1);
        boolean almostFull = bytes != null && size >= bytes.length - bytes.length / 8;
        row[column + 2] = almostFull ? bytes : size == 0 ? Bytes.NONE : Arrays.copyOf(bytes, size);
        return column + 3;
    }

    void clear() {
        count = 0;
        size = 0;
        nulls.clear();
        if (bytes != null && bytes.length > capacity) {
            bytes = null;
        }
    }
}

/** A set of small numbers, as bits. */
class Bits {
    private byte[] bits = new byte[128];
    private boolean any;

    void set(int number) {
        if (number / 8 >= bits.length) {
            bits = Arrays.copyOf(bits, Math.max(2 * bits.length, number / 8 + 1));
        }
        bits[number / 8] |= (byte) (1 << number % 8);
        any = true;
    }

    /** The numbers below end that are not in the set, as bits; empty if the set is empty. */
    byte[] complement(int end) {
        if (!any) {
            return Bytes.NONE;
        }
        byte[] complement = Arrays.copyOf(bits, (end + 7) / 8);
        for (int i = 0; i < complement.length; i++) {
            complement[i] = (byte) ~complement[i];
        }
        return complement;
    }

    void clear() {
        if (any) {
            Arrays.fill(bits, (byte) 0);
            any = false;
        }
    }
}

/** Numbers in their native byte order. */
class Bytes {
    static final byte[] NONE = new byte[0];

    static byte[] of(int[] numbers, int count) {
        byte[] bytes = new byte[4 * count];
        Platform.copyMemory(numbers, Platform.INT_ARRAY_OFFSET, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
        return bytes;
    }

    static byte[] of(long[] numbers, int count) {
        byte[] bytes = new byte[8 * count];
        Platform.copyMemory(numbers, Platform.LONG_ARRAY_OFFSET, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
        return bytes;
    }
}
