package s3sink;

import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.StringTokenizer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/**
 * Reads the timestamp of one record of each topic-partition, with a consumer that belongs to no group.
 *
 * Texts as in AdminBridge.java. One thread at a time. A fetch is at most one batch of a topic-partition, and a
 * topic-partition is paused after its first record.
 */
public class RecordTimes {
    private static final long POLL_MS = 250;
    private Map properties;
    private KafkaConsumer consumer;
    private volatile boolean closed;

    /** Does not connect. */
    public void open(Map properties) {
        this.properties = properties;
    }

    /** The timestamps of the first records at or after these offsets, of those found within the time. */
    public String read(String offsets, long timeoutMs) {
        try {
            if (consumer == null) {
                consumer = new KafkaConsumer(properties);
            }
            Map positions = positions(offsets);
            Set waiting = new HashSet(positions.keySet());
            Map found = new HashMap();
            consumer.assign(waiting);
            for (Iterator i = positions.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                consumer.seek((TopicPartition) entry.getKey(), ((Long) entry.getValue()).longValue());
            }
            long end = System.nanoTime() + timeoutMs * 1000000L;
            while (!waiting.isEmpty() && !closed && System.nanoTime() - end < 0) {
                try {
                    take(consumer.poll(Duration.ofMillis(POLL_MS)), waiting, found);
                } catch (OffsetOutOfRangeException error) {
                    consumer.pause(error.partitions());
                    waiting.removeAll(error.partitions());
                }
            }
            consumer.unsubscribe();
            return answer(found);
        } catch (Throwable error) {
            close();
            return failure(error);
        }
    }

    private void take(ConsumerRecords records, Set waiting, Map found) {
        for (Iterator i = records.partitions().iterator(); i.hasNext();) {
            TopicPartition partition = (TopicPartition) i.next();
            if (waiting.remove(partition)) {
                ConsumerRecord first = (ConsumerRecord) records.records(partition).get(0);
                found.put(partition, Long.valueOf(first.timestamp()));
                consumer.pause(Collections.singleton(partition));
            }
        }
    }

    /** Ends a call of read in another thread within POLL_MS. */
    public void stop() {
        closed = true;
    }

    /** Closes the connections; the next read opens them again. */
    public void close() {
        KafkaConsumer old = consumer;
        consumer = null;
        if (old != null) {
            try {
                old.close(Duration.ofMillis(1000));
            } catch (Throwable error) {
                return;
            }
        }
    }

    private static Map positions(String text) {
        Map found = new HashMap();
        StringTokenizer lines = new StringTokenizer(text, "\n");
        while (lines.hasMoreTokens()) {
            StringTokenizer words = new StringTokenizer(lines.nextToken(), " ");
            String topic = words.nextToken();
            while (words.hasMoreTokens()) {
                TopicPartition partition = new TopicPartition(topic, Integer.parseInt(words.nextToken()));
                found.put(partition, Long.valueOf(words.nextToken()));
            }
        }
        return found;
    }

    private static String answer(Map times) {
        StringBuilder out = new StringBuilder("+");
        for (Iterator i = times.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            TopicPartition partition = (TopicPartition) entry.getKey();
            out.append(partition.topic()).append(' ').append(partition.partition()).append(' ');
            out.append(((Long) entry.getValue()).longValue()).append('\n');
        }
        return out.toString();
    }

    private static String failure(Throwable error) {
        StringBuilder out = new StringBuilder("!");
        int depth = 0;
        for (Throwable cause = error; cause != null && depth < 10; cause = cause.getCause()) {
            String message = cause.getMessage() == null ? "" : cause.getMessage();
            out.append(cause.getClass().getName()).append(' ');
            out.append(message.replace('\n', ' ').replace('\r', ' ')).append('\n');
            depth++;
        }
        return out.toString();
    }
}
