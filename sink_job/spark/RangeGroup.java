package s3sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/**
 * Ranges of different topic-partitions of a task that are fetched together and sent one after the other.
 *
 * A fetch for each range costs milliseconds, which is more than the records of a small range.
 */
class RangeGroup {
    /** Each has its share of the bytes of a fetch, so that a group has as many in the heap as one large range. */
    static final int MAX_RANGES = 16;
    /** No more than a poll returns: a larger range profits from fetches of its own. */
    private static final long MAX_OFFSETS = 5000;
    private final List ranges = new ArrayList();
    private final List held = new ArrayList();
    private final Map indexes = new HashMap();
    private final Map starts = new HashMap();
    private final int maxBytes;
    private long heldBytes;
    private int sent;

    private RangeGroup(int maxBytes) {
        this.maxBytes = maxBytes;
    }

    /**
     * The groups of a task's ranges, in their order, without ranges that have no offset. maxBytes: bytes of keys,
     * values and headers above which a group holds no further records.
     */
    static List of(List ranges, int maxBytes) {
        List groups = new ArrayList();
        RangeGroup last = null;
        long offsets = 0;
        for (int i = 0; i < ranges.size(); i++) {
            OffsetRange range = (OffsetRange) ranges.get(i);
            long size = range.end - range.start;
            if (size <= 0) {
                continue;
            }
            if (last == null || !last.accepts(range) || offsets + size > MAX_OFFSETS) {
                last = new RangeGroup(maxBytes);
                groups.add(last);
                offsets = 0;
            }
            last.add(range);
            offsets += size;
        }
        return groups;
    }

    private boolean accepts(OffsetRange range) {
        return ranges.size() < MAX_RANGES && !indexes.containsKey(range.partition);
    }

    private void add(OffsetRange range) {
        indexes.put(range.partition, Integer.valueOf(ranges.size()));
        starts.put(range.partition, Long.valueOf(range.start));
        ranges.add(range);
        held.add(new ArrayList());
    }

    int size() {
        return ranges.size();
    }

    OffsetRange range(int index) {
        return (OffsetRange) ranges.get(index);
    }

    /** The first offset of each topic-partition. */
    Map starts() {
        return starts;
    }

    /** The number of ranges that have been sent completely. */
    int sent() {
        return sent;
    }

    boolean isSent() {
        return sent == ranges.size();
    }

    /** The range whose records are sent next. */
    OffsetRange current() {
        return range(Math.min(sent, ranges.size() - 1));
    }

    /** Whether no more records of later ranges are to be held. */
    boolean isFull() {
        return heldBytes > maxBytes;
    }

    boolean isRead(int index, Map positions) {
        OffsetRange range = range(index);
        return ((Long) positions.get(range.partition)).longValue() >= range.end;
    }

    /** Holds the records of a poll that lie before the ends of their ranges. */
    void hold(ConsumerRecords polled) {
        Iterator partitions = polled.partitions().iterator();
        while (partitions.hasNext()) {
            TopicPartition partition = (TopicPartition) partitions.next();
            int index = ((Integer) indexes.get(partition)).intValue();
            List records = polled.records(partition);
            long end = range(index).end;
            int count = records.size();
            while (count > 0 && ((ConsumerRecord) records.get(count - 1)).offset() >= end) {
                count--;
            }
            for (int i = 0; index > sent && i < count; i++) {
                heldBytes += bytes((ConsumerRecord) records.get(i));
            }
            ((List) held.get(index)).add(new ArrayList(records.subList(0, count)));
        }
    }

    /** Sends what is held of the range whose turn it is, and of each after it whose predecessor has been read. */
    void send(Frame frame, Map positions) throws IOException {
        while (sent < ranges.size()) {
            List polls = (List) held.get(sent);
            for (int i = 0; i < polls.size(); i++) {
                Iterator records = ((List) polls.get(i)).iterator();
                while (records.hasNext()) {
                    frame.add(range(sent).number, (ConsumerRecord) records.next());
                }
            }
            polls.clear();
            if (!isRead(sent, positions)) {
                return;
            }
            frame.send();
            sent++;
            release();
        }
    }

    /** The records of the range whose turn it is now are no longer held: they are sent at once. */
    private void release() {
        if (sent == ranges.size()) {
            return;
        }
        List polls = (List) held.get(sent);
        for (int i = 0; i < polls.size(); i++) {
            Iterator records = ((List) polls.get(i)).iterator();
            while (records.hasNext()) {
                heldBytes -= bytes((ConsumerRecord) records.next());
            }
        }
    }

    private static long bytes(ConsumerRecord record) {
        long bytes = Math.max(record.serializedKeySize(), 0) + Math.max(record.serializedValueSize(), 0);
        Header[] headers = record.headers().toArray();
        for (int i = 0; i < headers.length; i++) {
            byte[] value = headers[i].value();
            bytes += headers[i].key().length() + (value == null ? 0 : value.length);
        }
        return bytes;
    }
}
