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
    /** Time after which an idle consumer is closed: an idle sink has rounds more often, or none. */
    private static final long IDLE_MS = 60000;
    private static final Duration POLL = Duration.ofMillis(200);
    private static final LinkedList IDLE = new LinkedList();
    private static Timer timer;
    private final Map client;
    private final KafkaConsumer consumer;
    private TopicPartition assigned;
    private long position;
    private long idleSince;

    private RangeConsumer(Map client) {
        this.client = client;
        this.consumer = new KafkaConsumer(client);
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
        return new RangeConsumer(settings.client);
    }

    /** Keeps the consumer for later tasks. */
    void release() {
        synchronized (IDLE) {
            idleSince = System.currentTimeMillis();
            IDLE.addFirst(this);
            if (timer == null) {
                timer = new Timer("s3sink idle consumers", true);
                timer.schedule(new CloseIdle(), IDLE_MS, IDLE_MS / 4);
            }
        }
    }

    static void closeIdle(long now) {
        List old = new ArrayList();
        synchronized (IDLE) {
            Iterator idle = IDLE.iterator();
            while (idle.hasNext()) {
                RangeConsumer each = (RangeConsumer) idle.next();
                if (now - each.idleSince >= IDLE_MS) {
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
        } catch (RuntimeException error) {
            // Its connections end with its sockets.
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
                throw new TimeoutException("no record within " + frame.settings.timeoutMs + " ms at offset " + position);
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
        RangeConsumer.closeIdle(System.currentTimeMillis());
    }
}
