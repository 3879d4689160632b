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
 * Makes of a task's Kafka records packs: rows of many records each, as columns of bytes.
 *
 * What Spark does to a row takes it a microsecond, which is most of what reading a small record costs; a pack is one
 * row. pack.py reads the packs again, as what they are: the buffers of Arrow's arrays. It runs in the executors.
 */
public class ColumnarBatcher extends AbstractFunction1 implements Serializable {
    private static final long serialVersionUID = 1L;
    private int packBytes;
    private boolean timestamps;
    private boolean keys;
    private boolean headers;

    /** packBytes: when a pack is full. The others: which columns there are beside offset and value. */
    public ColumnarBatcher of(int packBytes, boolean timestamps, boolean keys, boolean headers) {
        ColumnarBatcher made = new ColumnarBatcher();
        made.packBytes = packBytes;
        made.timestamps = timestamps;
        made.keys = keys;
        made.headers = headers;
        return made;
    }

    public Object apply(Object records) {
        return new Packs((Iterator) records, packBytes, timestamps, keys, headers);
    }

    /** The columns of a pack. Every array is as long as `records` says; what lies behind it has no meaning. */
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
        return schema;
    }

    private static StructType strings(StructType schema, String name) {
        return binary(binary(binary(schema, name + "_valid"), name + "_bounds"), name + "_bytes");
    }

    private static StructType binary(StructType schema, String name) {
        return schema.add(name, DataTypes.BinaryType);
    }
}

/** A pack is full of one topic-partition's records. A row is good until the next one is asked for. */
class Packs extends AbstractIterator {
    private final Iterator records;
    private final int packBytes;
    private final int packRecords;
    private final Strings values;
    private final Strings keys;
    private final Strings headerKeys;
    private final Strings headerValues;
    private final Marks headerless;
    private final Object[] row;
    private long[] offsets = new long[1024];
    private long[] timestamps;
    private int[] headerBounds;
    private int count;
    private ConsumerRecord ahead;

    Packs(Iterator records, int packBytes, boolean timestamps, boolean keys, boolean headers) {
        this.records = records;
        this.packBytes = packBytes;
        this.packRecords = packBytes / 16;
        this.values = new Strings(packBytes);
        this.timestamps = timestamps ? new long[1024] : null;
        this.keys = keys ? new Strings(packBytes) : null;
        this.headerBounds = headers ? new int[1024] : null;
        this.headerKeys = headers ? new Strings(packBytes) : null;
        this.headerValues = headers ? new Strings(packBytes) : null;
        this.headerless = headers ? new Marks() : null;
        this.row = new Object[7 + (timestamps ? 1 : 0) + (keys ? 3 : 0) + (headers ? 8 : 0)];
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
        return pack(first);
    }

    private boolean isFull(ConsumerRecord record) {
        return count >= packRecords
            || !values.hasRoom((byte[]) record.value())
            || keys != null && !keys.hasRoom((byte[]) record.key())
            || headerKeys != null && headerKeys.size + headerValues.size >= packBytes;
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

    private InternalRow pack(ConsumerRecord first) {
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
            row[column++] = headerless.others(count);
            row[column++] = Bytes.of(headerBounds, count + 1);
            column = headerKeys.put(row, column);
            headerValues.put(row, column);
        }
        return new GenericInternalRow(row);
    }
}

/** A column of byte strings, each of which may be null. */
class Strings {
    private final int room;
    private final Marks nulls = new Marks();
    private byte[] bytes;
    private int[] bounds = new int[1024];
    int count;
    int size;

    Strings(int room) {
        this.room = room;
    }

    boolean hasRoom(byte[] value) {
        return value == null || value.length <= room - size;
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
        byte[] larger = new byte[Math.max(needed, Math.min(room, 8 * needed))];
        if (size > 0) {
            System.arraycopy(bytes, 0, larger, 0, size);
        }
        bytes = larger;
    }

    int put(Object[] row, int column) {
        row[column] = nulls.others(count);
        row[column + 1] = Bytes.of(bounds, count + 1);
        boolean almost = bytes != null && size >= bytes.length - bytes.length / 8;
        row[column + 2] = almost ? bytes : size == 0 ? Bytes.NONE : Arrays.copyOf(bytes, size);
        return column + 3;
    }

    void clear() {
        count = 0;
        size = 0;
        nulls.clear();
        if (bytes != null && bytes.length > room) {
            bytes = null;
        }
    }
}

/** A set of small numbers. */
class Marks {
    private byte[] bits = new byte[128];
    private boolean any;

    void set(int number) {
        if (number / 8 >= bits.length) {
            bits = Arrays.copyOf(bits, Math.max(2 * bits.length, number / 8 + 1));
        }
        bits[number / 8] |= (byte) (1 << number % 8);
        any = true;
    }

    /** The numbers below end that are not in the set, as bits; nothing where that is all of them. */
    byte[] others(int end) {
        if (!any) {
            return Bytes.NONE;
        }
        byte[] others = Arrays.copyOf(bits, (end + 7) / 8);
        for (int i = 0; i < others.length; i++) {
            others[i] = (byte) ~others[i];
        }
        return others;
    }

    void clear() {
        if (any) {
            Arrays.fill(bits, (byte) 0);
            any = false;
        }
    }
}

/** Numbers as they lie in memory. */
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
