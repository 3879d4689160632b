package s3sink;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.kafka.clients.consumer.ConsumerRecord;
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
    private TopicPartition assigned;
    private long position;
    private long idleSince;

    private RangeConsumer(ReaderSettings settings) {
        this.client = settings.client;
        this.idleMs = settings.idleMs;
        this.consumer = new KafkaConsumer(settings.client);
    }

    /** A consumer for the first range: preferably the one that has fetched its records already. */
    static RangeConsumer take(ReaderSettings settings, OffsetRange range) {
        synchronized (IDLE) {
            RangeConsumer found = null;
            Iterator idle = IDLE.iterator();
            while (idle.hasNext()) {
                RangeConsumer each = (RangeConsumer) idle.next();
                if (each.client.equals(settings.client)
                        && (found == null || each.isAt(range.partition, range.start))) {
                    found = each;
                }
            }
            if (found != null) {
                IDLE.remove(found);
                return found;
            }
        }
        return new RangeConsumer(settings);
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

    private boolean isAt(TopicPartition partition, long offset) {
        return partition.equals(assigned) && position == offset;
    }

    /**
     * Sends the records of a range. It is read completely when the consumer's position is at or past its end, since
     * its last offsets may be control records or may have been removed by compaction.
     */
    void read(OffsetRange range, int number, Frame frame) throws IOException {
        seek(range);
        long progress = System.nanoTime();
        while (position < range.end) {
            Iterator records = consumer.poll(POLL).iterator();
            while (records.hasNext()) {
                ConsumerRecord record = (ConsumerRecord) records.next();
                if (record.offset() >= range.end) {
                    break;
                }
                frame.add(number, record);
            }
            long reached = consumer.position(range.partition);
            if (reached > position) {
                position = reached;
                progress = System.nanoTime();
            } else if (System.nanoTime() - progress > 1000000L * frame.settings.timeoutMs) {
                throw new TimeoutException("no record of " + range.partition + " at offset " + position
                    + " within " + frame.settings.timeoutMs + " ms");
            }
        }
        frame.send();
    }

    private void seek(OffsetRange range) {
        if (isAt(range.partition, range.start)) {
            return;
        }
        if (!range.partition.equals(assigned)) {
            consumer.assign(Collections.singletonList(range.partition));
            assigned = range.partition;
        }
        consumer.seek(range.partition, range.start);
        position = range.start;
    }
}

class CloseIdle extends TimerTask {
    public void run() {
        RangeConsumer.closeIdle();
    }
}
