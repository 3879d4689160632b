package s3sink;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * The producer of dead letters. Janino compiles this class as it does AdminBridge.java, whose answers and errors have
 * the same form.
 *
 * Records are bytes: for each the timestamp (8 bytes), key, value, the number of headers (4), and name and value of each
 * header. Each of these texts and byte strings has its length before it (4 bytes; -1: null).
 */
public class DeadLetterBridge implements Callback {
    private KafkaProducer producer;
    private volatile Exception failure;

    /** Creates the producer. */
    public String open(Map properties) {
        try {
            close();
            failure = null;
            producer = new KafkaProducer(properties);
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** Ends the transaction of an earlier producer, and fences it. */
    public String initTransactions() {
        try {
            producer.initTransactions();
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    public String begin() {
        try {
            producer.beginTransaction();
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** Sends records. An error of an earlier one is the answer, too. */
    public String send(String topic, byte[] data) {
        try {
            ByteBuffer records = ByteBuffer.wrap(data);
            while (records.hasRemaining() && failure == null) {
                long timestamp = records.getLong();
                byte[] key = bytes(records);
                byte[] value = bytes(records);
                Headers headers = new RecordHeaders();
                for (int left = records.getInt(); left > 0; left--) {
                    String name = new String(bytes(records), "UTF-8");
                    headers.add(name, bytes(records));
                }
                producer.send(new ProducerRecord(topic, (Integer) null, Long.valueOf(timestamp), key, value, headers), this);
            }
            return sent();
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** Waits until all records are stored. */
    public String flush() {
        try {
            producer.flush();
            return sent();
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** Commits the transaction with an offset of the group: that of partition 0 of the topic. */
    public String commit(String group, String topic, long offset, String metadata) {
        try {
            Map offsets = new HashMap();
            offsets.put(new TopicPartition(topic, 0), new OffsetAndMetadata(offset, metadata));
            producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(group));
            producer.commitTransaction();
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    public String abort() {
        try {
            producer.abortTransaction();
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    public void onCompletion(RecordMetadata metadata, Exception error) {
        if (error != null && failure == null) {
            failure = error;
        }
    }

    private String sent() {
        return failure == null ? "+" : failure(failure);
    }

    private static byte[] bytes(ByteBuffer from) {
        int length = from.getInt();
        if (length < 0) {
            return null;
        }
        byte[] found = new byte[length];
        from.get(found);
        return found;
    }

    public void close() {
        if (producer != null) {
            KafkaProducer closed = producer;
            producer = null;
            closed.close(Duration.ofMillis(1000));
        }
    }

    /**
     * The group's offset of partition 0 of the topic, a space, and its metadata; an empty text if there is none. Waits
     * until a transaction that commits a later one has ended: Kafka's client then answers as if there were none.
     */
    public static String committed(Map properties, String group, String topic, long timeoutMs) {
        Admin admin = null;
        try {
            admin = Admin.create(properties);
            TopicPartition place = new TopicPartition(topic, 0);
            long deadline = System.currentTimeMillis() + timeoutMs;
            while (true) {
                OffsetAndMetadata stable = offset(admin, group, place, true, timeoutMs);
                if (stable != null || offset(admin, group, place, false, timeoutMs) == null) {
                    return stable == null ? "+" : "+" + stable.offset() + " " + stable.metadata();
                }
                if (System.currentTimeMillis() > deadline) {
                    throw new org.apache.kafka.common.errors.TimeoutException(
                        "a transaction that commits an offset of group " + group + " is open");
                }
                Thread.sleep(200);
            }
        } catch (Throwable error) {
            return failure(error);
        } finally {
            if (admin != null) {
                admin.close(Duration.ofMillis(1000));
            }
        }
    }

    private static OffsetAndMetadata offset(
        Admin admin, String group, TopicPartition place, boolean stable, long timeoutMs) throws Exception {
        ListConsumerGroupOffsetsSpec spec = new ListConsumerGroupOffsetsSpec().topicPartitions((Collection) Collections.singletonList(place));
        ListConsumerGroupOffsetsOptions options = new ListConsumerGroupOffsetsOptions().requireStable(stable);
        Map found = (Map) admin.listConsumerGroupOffsets(Collections.singletonMap(group, spec), options)
            .partitionsToOffsetAndMetadata(group).get(timeoutMs, TimeUnit.MILLISECONDS);
        return (OffsetAndMetadata) found.get(place);
    }

    /**
     * max.message.bytes of the topic (-1: not readable), whether it may be written to (0, 1, or -1: unknown), and its
     * cleanup.policy (-: not readable).
     */
    public static String check(Map properties, String topic, long timeoutMs) {
        Admin admin = null;
        try {
            admin = Admin.create(properties);
            DescribeTopicsOptions options = new DescribeTopicsOptions().includeAuthorizedOperations(true);
            List names = Collections.singletonList(topic);
            Map topics = (Map) admin.describeTopics((Collection) names, options).allTopicNames().get(timeoutMs, TimeUnit.MILLISECONDS);
            Set allowed = ((TopicDescription) topics.get(topic)).authorizedOperations();
            // Some brokers list none: who may describe a topic has that operation at least.
            int write = allowed == null || allowed.isEmpty() ? -1 : allowed.contains(AclOperation.WRITE) ? 1 : 0;
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            String limit = "-1";
            String policy = "-";
            try {
                Map found = (Map) admin.describeConfigs(Collections.singletonList(resource)).all().get(timeoutMs, TimeUnit.MILLISECONDS);
                Config config = (Config) found.get(resource);
                limit = config.get("max.message.bytes").value();
                policy = config.get("cleanup.policy").value();
            } catch (Throwable unreadable) {
                // A topic whose configuration may not be read has Kafka's defaults.
            }
            return "+" + limit + " " + write + " " + policy;
        } catch (Throwable error) {
            return failure(error);
        } finally {
            if (admin != null) {
                admin.close(Duration.ofMillis(1000));
            }
        }
    }

    /**
     * The values of a header, one a line, of all records with a timestamp of `since` or later, up to the end of the
     * topic. Waits for transactions that are open before that end.
     */
    public static String search(Map properties, String topic, String header, String prefix, long since, long timeoutMs) {
        KafkaConsumer consumer = null;
        try {
            consumer = new KafkaConsumer(properties);
            List partitions = new ArrayList();
            Map times = new HashMap();
            for (Iterator i = consumer.partitionsFor(topic).iterator(); i.hasNext();) {
                TopicPartition partition = new TopicPartition(topic, ((PartitionInfo) i.next()).partition());
                partitions.add(partition);
                times.put(partition, Long.valueOf(since));
            }
            consumer.assign(partitions);
            Map starts = new HashMap();
            Map ends = ends(properties, partitions, times, starts);
            for (Iterator i = partitions.iterator(); i.hasNext();) {
                TopicPartition partition = (TopicPartition) i.next();
                OffsetAndTimestamp start = (OffsetAndTimestamp) starts.get(partition);
                consumer.seek(partition, start == null ? ((Long) ends.get(partition)).longValue() : start.offset());
            }
            StringBuilder found = new StringBuilder("+");
            long deadline = System.currentTimeMillis() + timeoutMs;
            while (isBefore(consumer, partitions, ends)) {
                Iterator records = consumer.poll(Duration.ofMillis(500)).iterator();
                if (records.hasNext()) {
                    deadline = System.currentTimeMillis() + timeoutMs;
                } else if (System.currentTimeMillis() > deadline) {
                    throw new org.apache.kafka.common.errors.TimeoutException(
                        "a transaction of another producer is open in topic " + topic);
                }
                while (records.hasNext()) {
                    ConsumerRecord record = (ConsumerRecord) records.next();
                    Header id = record.headers().lastHeader(header);
                    if (id != null && id.value() != null) {
                        String value = new String(id.value(), "UTF-8");
                        if (value.startsWith(prefix)) {
                            found.append(value).append('\n');
                        }
                    }
                }
            }
            return found.toString();
        } catch (Throwable error) {
            return failure(error);
        } finally {
            if (consumer != null) {
                consumer.close(Duration.ofMillis(1000));
            }
        }
    }

    /**
     * The high watermarks: open transactions end before them. Adds the first offsets since these times to starts: with
     * read_committed the broker would not find one behind an open transaction.
     */
    private static Map ends(Map properties, List partitions, Map times, Map starts) {
        Map uncommitted = new HashMap(properties);
        uncommitted.put("isolation.level", "read_uncommitted");
        KafkaConsumer consumer = new KafkaConsumer(uncommitted);
        try {
            starts.putAll(consumer.offsetsForTimes(times));
            return consumer.endOffsets((Collection) partitions);
        } finally {
            consumer.close(Duration.ofMillis(1000));
        }
    }

    private static boolean isBefore(KafkaConsumer consumer, List partitions, Map ends) {
        for (Iterator i = partitions.iterator(); i.hasNext();) {
            TopicPartition partition = (TopicPartition) i.next();
            if (consumer.position(partition) < ((Long) ends.get(partition)).longValue()) {
                return true;
            }
        }
        return false;
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
