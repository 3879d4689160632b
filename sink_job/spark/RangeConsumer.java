package s3sink;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/** A consumer that is kept between tasks. One thread uses it at a time. */
class RangeConsumer {
    private static final long CHECK_MS = 1000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final LinkedList IDLE = new LinkedList();
    private static Timer timer;
    private final Map client;
    private final long idleMs;
    private final KafkaConsumer consumer;
    /** The next offset of each assigned topic-partition. */
    private final Map positions = new HashMap();
    private long idleSince;

    private RangeConsumer(Map client, long idleMs) {
        this.client = client;
        this.idleMs = idleMs;
        this.consumer = new KafkaConsumer(client);
    }

    /** A consumer with these properties: preferably the one that has fetched records of the first group already. */
    static RangeConsumer take(Map client, long idleMs, RangeGroup first) {
        synchronized (IDLE) {
            RangeConsumer found = null;
            Iterator idle = IDLE.iterator();
            while (idle.hasNext()) {
                RangeConsumer each = (RangeConsumer) idle.next();
                if (each.client.equals(client) && (found == null || each.positions.equals(first.starts()))) {
                    found = each;
                }
            }
            if (found != null) {
                IDLE.remove(found);
                return found;
            }
        }
        return new RangeConsumer(client, idleMs);
    }

    /** Keeps the consumer for later tasks, until it has been idle for the time of its settings. */
    void release() {
        synchronized (IDLE) {
            idleSince = System.nanoTime();
            IDLE.addFirst(this);
            if (timer == null) {
                timer = new Timer("s3sink idle consumers", true);
                timer.schedule(new CloseIdle(), CHECK_MS, CHECK_MS);
            }
        }
    }

    /** A consumer is removed from the list under its lock first, so that no task takes one that is closed. */
    static void closeIdle() {
        long now = System.nanoTime();
        List old = new ArrayList();
        synchronized (IDLE) {
            Iterator idle = IDLE.iterator();
            while (idle.hasNext()) {
                RangeConsumer each = (RangeConsumer) idle.next();
                if (now - each.idleSince >= 1000000L * each.idleMs) {
                    idle.remove();
                    old.add(each);
                }
            }
        }
        for (int i = 0; i < old.size(); i++) {
            ((RangeConsumer) old.get(i)).close();
        }
    }

    /** Closes the consumer, also on a thread that was interrupted. */
    void close() {
        boolean interrupted = Thread.interrupted();
        try {
            consumer.close(Duration.ZERO);
        } catch (Throwable error) {
            // Its sockets are closed in any case.
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Sends the records of a group of ranges, in the order of the ranges. A range is read completely when the
     * consumer's position is at or past its end, since its last offsets may be control records or may have been removed
     * by compaction.
     *
     * Records that arrive before their turn are held. While they are too many bytes, only the range whose turn it is
     * is read.
     */
    void read(RangeGroup group, Frame frame) throws IOException {
        seek(group);
        long progress = System.nanoTime();
        while (!group.isSent()) {
            ConsumerRecords records = consumer.poll(POLL);
            group.hold(records);
            boolean advanced = advance(group);
            if (!advanced && System.nanoTime() - progress > 1000000L * frame.settings.timeoutMs) {
                OffsetRange range = group.current();
                throw new TimeoutException("no record of " + range.partition + " at offset "
                    + positions.get(range.partition) + " within " + frame.settings.timeoutMs + " ms");
            }
            group.send(frame, positions);
            if (advanced) {
                progress = System.nanoTime(); // without the time for which the worker was busy
            }
            if (group.size() > 1) {
                pauseAndResume(group);
            }
        }
    }

    private void seek(RangeGroup group) {
        Map starts = group.starts();
        consumer.resume(consumer.paused()); // of a group that was not read to its end
        if (positions.equals(starts)) {
            return;
        }
        if (!positions.keySet().equals(starts.keySet())) {
            consumer.assign(starts.keySet());
            positions.keySet().retainAll(starts.keySet());
        }
        Iterator each = starts.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry start = (Map.Entry) each.next();
            if (!start.getValue().equals(positions.get(start.getKey()))) {
                consumer.seek((TopicPartition) start.getKey(), ((Long) start.getValue()).longValue());
                positions.put(start.getKey(), start.getValue());
            }
        }
    }

    /** Whether the consumer has got further in one of the ranges. */
    private boolean advance(RangeGroup group) {
        boolean advanced = false;
        for (int i = group.sent(); i < group.size(); i++) {
            TopicPartition partition = group.range(i).partition;
            long reached = consumer.position(partition);
            if (reached > ((Long) positions.get(partition)).longValue()) {
                positions.put(partition, Long.valueOf(reached));
                advanced = true;
            }
        }
        return advanced;
    }

    /** Nothing is fetched of a range that has been read, and only the current one while too much is held. */
    private void pauseAndResume(RangeGroup group) {
        List paused = new ArrayList();
        List resumed = new ArrayList();
        for (int i = 0; i < group.size(); i++) {
            TopicPartition partition = group.range(i).partition;
            boolean isRead = group.isRead(i, positions) || group.isFull() && i > group.sent();
            // After the group its topic-partitions are fetched again: the next task may continue there.
            (isRead && !group.isSent() ? paused : resumed).add(partition);
        }
        consumer.pause(paused);
        consumer.resume(resumed);
    }
}

class CloseIdle extends TimerTask {
    public void run() {
        RangeConsumer.closeIdle();
    }
}
