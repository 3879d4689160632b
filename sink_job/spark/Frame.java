package s3sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.spark.storage.StorageUtils;

/**
 * Records of one range as the buffers of Arrow arrays, which are sent together. frames.py reads them.
 *
 * A frame begins with a head of HEAD bytes: the number of the range in the task (or a negative number: END, ERROR), the
 * number of records, and the size of each section in bytes. The sections follow, each filled up to a multiple of 8
 * bytes. All numbers have the byte order of the machine. A frame is sent when its values reach batchBytes; a larger
 * value has a frame of its own.
 */
class Frame {
    static final int HEAD = 128;
    /** Bytes of a frame for each record, if an envelope of a few hundred bytes is written around its value. */
    private static final int ENVELOPED = 128;
    private static final int FEWEST_BYTES = 16;
    private static final byte[] NO_BYTES = new byte[0];
    final ReaderSettings settings;
    private final SocketChannel channel;
    private final ByteBuffer head = direct(HEAD);
    private final Section[] sections;
    private final ByteBuffer[] parts;
    private final int maxRecords;
    private final Section offsets = new Section();
    private final Strings values;
    private final Section timestamps;
    private final Strings keys;
    private final Bits headersValid;
    private final Section headersBounds;
    private final Strings headerKeys;
    private final Strings headerValues;
    private final Section timestampTypes;
    private int range;
    private int count;

    Frame(SocketChannel channel, ReaderSettings settings) {
        this.channel = channel;
        this.settings = settings;
        this.maxRecords = settings.batchBytes / (settings.timestampTypes ? ENVELOPED : FEWEST_BYTES);
        this.values = new Strings();
        this.timestamps = settings.timestamps ? new Section() : null;
        this.keys = settings.keys ? new Strings() : null;
        this.headersValid = settings.headers ? new Bits() : null;
        this.headersBounds = settings.headers ? new Section() : null;
        this.headerKeys = settings.headers ? new Strings() : null;
        this.headerValues = settings.headers ? new Strings() : null;
        this.timestampTypes = settings.timestampTypes ? new Section() : null;
        Section[] all = {
            offsets, values.valid, values.bounds, values.bytes,
            timestamps,
            keys == null ? null : keys.valid, keys == null ? null : keys.bounds, keys == null ? null : keys.bytes,
            headersValid, headersBounds,
            headerKeys == null ? null : headerKeys.valid,
            headerKeys == null ? null : headerKeys.bounds,
            headerKeys == null ? null : headerKeys.bytes,
            headerValues == null ? null : headerValues.valid,
            headerValues == null ? null : headerValues.bounds,
            headerValues == null ? null : headerValues.bytes,
            timestampTypes
        };
        this.sections = all;
        this.parts = new ByteBuffer[1 + all.length];
        clear();
    }

    /** Adds a record of this range, after sending those before it if it does not fit. */
    void add(int range, ConsumerRecord record) throws IOException {
        ByteBuffer value = (ByteBuffer) record.value();
        int size = value == null ? 0 : value.remaining();
        if (count > 0 && isFull(size)) {
            send();
        }
        this.range = range;
        offsets.putLong(record.offset());
        values.add(value, settings.separator);
        if (timestamps != null) {
            timestamps.putLong(record.timestamp());
        }
        if (keys != null) {
            keys.add((ByteBuffer) record.key(), NO_BYTES);
        }
        if (headerKeys != null) {
            addHeaders(record.headers().toArray());
        }
        if (timestampTypes != null) {
            timestampTypes.putByte((byte) record.timestampType().id);
        }
        count++;
    }

    private boolean isFull(int size) {
        int room = settings.batchBytes;
        return count >= maxRecords
            || size > room - values.bytes.size()
            || keys != null && keys.bytes.size() >= room
            || headerKeys != null && headerKeys.bytes.size() + headerValues.bytes.size() >= room;
    }

    private void addHeaders(Header[] headers) {
        for (int i = 0; i < headers.length; i++) {
            headerKeys.add(ByteBuffer.wrap(headers[i].key().getBytes(StandardCharsets.UTF_8)), NO_BYTES);
            byte[] value = headers[i].value();
            headerValues.add(value == null ? null : ByteBuffer.wrap(value), NO_BYTES);
        }
        headersValid.add(headers.length > 0);
        headersBounds.putInt(headerKeys.count);
    }

    /** Sends the records, if there are any. */
    void send() throws IOException {
        if (count == 0) {
            return;
        }
        head.clear();
        head.putInt(range).putInt(count);
        for (int i = 0; i < sections.length; i++) {
            Section section = sections[i];
            if (section != null) {
                section.finish();
            }
            head.putInt(section == null ? 0 : section.size());
            parts[1 + i] = section == null ? NOTHING : section.content();
        }
        head.position(0);
        head.limit(HEAD);
        parts[0] = head;
        write(parts);
        clear();
    }

    /** Sends a frame without records: what it means, and a text. */
    void control(int meaning, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        ByteBuffer content = direct((bytes.length + 7) / 8 * 8);
        content.put(bytes);
        content.clear();
        head.clear();
        head.putInt(meaning).putInt(0).putInt(bytes.length);
        while (head.position() < HEAD) {
            head.put((byte) 0);
        }
        head.position(0);
        head.limit(HEAD);
        ByteBuffer[] both = {head, content};
        write(both);
    }

    private void write(ByteBuffer[] buffers) throws IOException {
        ByteBuffer last = null;
        for (int i = 0; i < buffers.length; i++) {
            last = buffers[i].hasRemaining() ? buffers[i] : last;
        }
        while (last != null && last.hasRemaining()) {
            channel.write(buffers);
        }
    }

    private void clear() {
        count = 0;
        for (int i = 0; i < sections.length; i++) {
            if (sections[i] != null) {
                sections[i].clear(settings.batchBytes);
            }
        }
        values.clear();
        if (keys != null) {
            keys.clear();
        }
        if (headerKeys != null) {
            headerKeys.clear();
            headerValues.clear();
            headersBounds.putInt(0);
        }
    }

    /** Frees the memory. The frame is not used afterwards. */
    void free() {
        for (int i = 0; i < sections.length; i++) {
            if (sections[i] != null) {
                sections[i].free();
            }
        }
        StorageUtils.dispose(head);
    }

    private static final ByteBuffer NOTHING = ByteBuffer.allocateDirect(0);

    static ByteBuffer direct(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    }
}

/**
 * Bytes outside of the heap, which grow. Their memory is freed explicitly: the garbage collector would free it when it
 * collects the old generation, where the buffers of a long task are, and until then each task would take its own.
 */
class Section {
    private static final int FIRST = 1 << 13;
    private ByteBuffer bytes = Frame.direct(FIRST);

    void putLong(long number) {
        room(8);
        bytes.putLong(number);
    }

    void putInt(int number) {
        room(4);
        bytes.putInt(number);
    }

    void putByte(byte number) {
        room(1);
        bytes.put(number);
    }

    void put(ByteBuffer content) {
        room(content.remaining());
        bytes.put(content);
    }

    void put(byte[] content) {
        room(content.length);
        bytes.put(content);
    }

    int size() {
        return bytes.position();
    }

    /** Called before the section is sent. */
    void finish() {
    }

    /** The content, filled up to a multiple of 8 bytes. */
    ByteBuffer content() {
        int size = (bytes.position() + 7) / 8 * 8;
        room(size - bytes.position());
        ByteBuffer content = (ByteBuffer) bytes.duplicate();
        content.position(0);
        content.limit(size);
        return content;
    }

    /** Memory above twice the usual size is not kept. */
    void clear(int usual) {
        if (bytes.capacity() > 2 * usual) {
            free();
            bytes = Frame.direct(FIRST);
        }
        bytes.clear();
    }

    void free() {
        StorageUtils.dispose(bytes);
    }

    private void room(int needed) {
        if (bytes.remaining() < needed) {
            int size = Math.addExact(bytes.position(), needed + 8);
            ByteBuffer larger = Frame.direct(size > 1 << 29 ? size : Math.max(2 * bytes.capacity(), size));
            bytes.flip();
            larger.put(bytes);
            free();
            bytes = larger;
        }
    }
}

/** A column of byte strings, which may be null. */
class Strings {
    final Bits valid = new Bits();
    final Section bounds = new Section();
    final Section bytes = new Section();
    int count;

    /** Adds a value, and the bytes after it. */
    void add(ByteBuffer value, byte[] after) {
        valid.add(value != null);
        if (value != null) {
            bytes.put((ByteBuffer) value.duplicate());
            bytes.put(after);
        }
        bounds.putInt(bytes.size());
        count++;
    }

    void clear() {
        count = 0;
        bounds.putInt(0);
    }
}

/** A bit for each value. Empty if all bits are set. */
class Bits extends Section {
    private int count;
    private int current;
    private boolean all = true;

    void add(boolean bit) {
        if (bit && all) {
            count++;
            return;
        }
        if (all) {
            all = false;
            for (int i = 0; i < count / 8; i++) {
                putByte((byte) 255);
            }
            current = (1 << count % 8) - 1;
        }
        current |= bit ? 1 << count % 8 : 0;
        count++;
        if (count % 8 == 0) {
            putByte((byte) current);
            current = 0;
        }
    }

    void finish() {
        if (!all && count % 8 > 0) {
            putByte((byte) current);
        }
    }

    void clear(int usual) {
        super.clear(usual);
        count = 0;
        current = 0;
        all = true;
    }
}
