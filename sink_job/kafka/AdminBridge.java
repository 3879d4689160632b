package s3sink;

import java.net.URLEncoder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringTokenizer;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * Kafka's admin client with bulk requests: each method takes and returns one text.
 *
 * A call from Python per topic-partition takes a millisecond each; a bulk call takes a few milliseconds for thousands.
 * Janino, the compiler in Spark's distribution, compiles this class at the start of the admin client. It requires raw
 * types and casts, and supports no lambdas.
 *
 * A text has one line per topic: the name, and then the partitions or the pairs of partition and offset, separated by
 * single spaces. An answer starts with '+'. An error is '!' and the chain of exceptions, outermost first, one per line:
 * the class name, a space and the message.
 */
public class AdminBridge {
    private static final long GRACE_MS = 5000;
    private Admin admin;
    private long timeoutMs;

    /** Creates the client. */
    public String open(Map properties, long timeoutMs) {
        try {
            this.timeoutMs = timeoutMs;
            this.admin = Admin.create(properties);
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** Waits for the client's own timeout, whose exceptions are more precise, and a grace period. */
    private Object get(KafkaFuture future) throws Exception {
        return future.get(timeoutMs + GRACE_MS, TimeUnit.MILLISECONDS);
    }

    public String offsets(String partitions, String spec, boolean committed) {
        try {
            OffsetSpec position = "latest".equals(spec) ? OffsetSpec.latest()
                : "earliest".equals(spec) ? OffsetSpec.earliest()
                : OffsetSpec.forTimestamp(Long.parseLong(spec));
            List requested = partitions(partitions);
            Map request = new HashMap();
            for (int i = 0; i < requested.size(); i++) {
                request.put(requested.get(i), position);
            }
            IsolationLevel level = committed ? IsolationLevel.READ_COMMITTED : IsolationLevel.READ_UNCOMMITTED;
            Map found = (Map) get(admin.listOffsets(request, new ListOffsetsOptions(level)).all());
            Map offsets = new HashMap();
            for (Iterator i = found.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                long offset = ((ListOffsetsResult.ListOffsetsResultInfo) entry.getValue()).offset();
                offsets.put(entry.getKey(), Long.valueOf(offset));
            }
            return answer(offsets);
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** One line per topic: name, topic id, number of partitions. Only the name for a topic that does not exist. */
    public String topics(String names) {
        try {
            return "+" + describe(words(names));
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** Like topics, for the topics whose whole name matches, without Kafka's internal topics. */
    public String topicsMatching(String pattern) {
        try {
            Pattern compiled = Pattern.compile(pattern);
            List names = new ArrayList();
            for (Iterator i = ((Set) get(admin.listTopics().names())).iterator(); i.hasNext();) {
                String name = (String) i.next();
                if (compiled.matcher(name).matches()) {
                    names.add(name);
                }
            }
            return "+" + describe(names);
        } catch (Throwable error) {
            return failure(error);
        }
    }

    private String describe(List names) throws Exception {
        StringBuilder out = new StringBuilder();
        Map found = admin.describeTopics(names).topicNameValues();
        for (Iterator i = found.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            out.append(entry.getKey());
            try {
                TopicDescription topic = (TopicDescription) get((KafkaFuture) entry.getValue());
                out.append(' ').append(topic.topicId()).append(' ').append(topic.partitions().size());
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw error;
                }
            }
            out.append('\n');
        }
        return out.toString();
    }

    public String clusterId() {
        try {
            return "+" + get(admin.describeCluster().clusterId());
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** The group's committed offsets of these partitions; an empty text means all. With metadata: only offsets whose
     * metadata is equal to it, or starts with it and a comma. */
    public String groupOffsets(String group, String partitions, String metadata) {
        try {
            Map found = committed(group, partitions);
            Map offsets = new HashMap();
            for (Iterator i = found.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                OffsetAndMetadata known = (OffsetAndMetadata) entry.getValue();
                if (known != null && (metadata.length() == 0 || (known.metadata() + ",").startsWith(metadata + ","))) {
                    offsets.put(entry.getKey(), Long.valueOf(known.offset()));
                }
            }
            return answer(offsets);
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** One line per partition with a committed offset: topic, partition, and the URL-encoded metadata. */
    public String groupMetadata(String group, String partitions) {
        try {
            StringBuilder text = new StringBuilder("+");
            Map found = committed(group, partitions);
            for (Iterator i = found.entrySet().iterator(); i.hasNext();) {
                Map.Entry entry = (Map.Entry) i.next();
                TopicPartition partition = (TopicPartition) entry.getKey();
                OffsetAndMetadata known = (OffsetAndMetadata) entry.getValue();
                if (known != null) {
                    text.append(partition.topic()).append(' ').append(partition.partition()).append(' ');
                    text.append(URLEncoder.encode(known.metadata(), "UTF-8")).append('\n');
                }
            }
            return text.toString();
        } catch (Throwable error) {
            return failure(error);
        }
    }

    private Map committed(String group, String partitions) throws Throwable {
        ListConsumerGroupOffsetsSpec spec = new ListConsumerGroupOffsetsSpec();
        if (partitions.length() > 0) {
            spec.topicPartitions(partitions(partitions));
        }
        return (Map) get(
            admin.listConsumerGroupOffsets(Collections.singletonMap(group, spec)).partitionsToOffsetAndMetadata(group));
    }

    /** The number of active members of the group; 0 for a group that does not exist. */
    public String groupMembers(String group) {
        try {
            KafkaFuture found = (KafkaFuture) admin.describeConsumerGroups(Collections.singletonList(group)).describedGroups().get(group);
            return "+" + ((ConsumerGroupDescription) get(found)).members().size();
        } catch (Throwable error) {
            return error.getCause() instanceof GroupIdNotFoundException ? "+0" : failure(error);
        }
    }

    /** One line per active member of a consumer group and topic that it is assigned, of these topics: the URL-encoded
     * group, the URL-encoded client id and the topic. Groups that may not be listed or described are left out. */
    public String activeGroups(String topics) {
        try {
            List requested = words(topics);
            List groups = new ArrayList();
            for (Iterator i = ((Collection) get(admin.listConsumerGroups().valid())).iterator(); i.hasNext();) {
                groups.add(((ConsumerGroupListing) i.next()).groupId());
            }
            Set lines = new TreeSet();
            Map described = admin.describeConsumerGroups(groups).describedGroups();
            for (Iterator i = described.values().iterator(); i.hasNext();) {
                try {
                    addMembers(lines, (ConsumerGroupDescription) get((KafkaFuture) i.next()), requested);
                } catch (ExecutionException error) {
                    if (!(error.getCause() instanceof ApiException)) {
                        throw error;
                    }
                }
            }
            StringBuilder out = new StringBuilder("+");
            for (Iterator i = lines.iterator(); i.hasNext();) {
                out.append((String) i.next()).append('\n');
            }
            return out.toString();
        } catch (Throwable error) {
            return failure(error);
        }
    }

    private static void addMembers(Set lines, ConsumerGroupDescription group, List requested) throws Exception {
        for (Iterator i = group.members().iterator(); i.hasNext();) {
            MemberDescription member = (MemberDescription) i.next();
            for (Iterator j = member.assignment().topicPartitions().iterator(); j.hasNext();) {
                String topic = ((TopicPartition) j.next()).topic();
                if (requested.contains(topic)) {
                    String client = URLEncoder.encode(member.clientId(), "UTF-8");
                    lines.add(URLEncoder.encode(group.groupId(), "UTF-8") + " " + client + " " + topic);
                }
            }
        }
    }

    public String commit(String group, String offsets, String metadata) {
        try {
            Map request = new HashMap();
            StringTokenizer lines = new StringTokenizer(offsets, "\n");
            while (lines.hasMoreTokens()) {
                StringTokenizer words = new StringTokenizer(lines.nextToken(), " ");
                String topic = words.nextToken();
                while (words.hasMoreTokens()) {
                    TopicPartition partition = new TopicPartition(topic, Integer.parseInt(words.nextToken()));
                    request.put(partition, new OffsetAndMetadata(Long.parseLong(words.nextToken()), metadata));
                }
            }
            get(admin.alterConsumerGroupOffsets(group, request).all());
            return "+";
        } catch (Throwable error) {
            return failure(error);
        }
    }

    /** The size in bytes on disk of each partition's largest replica. */
    public String sizes(String topics) {
        try {
            Map requested = new HashMap();
            for (Iterator i = words(topics).iterator(); i.hasNext();) {
                requested.put(i.next(), Boolean.TRUE);
            }
            List brokers = new ArrayList();
            for (Iterator i = ((Collection) get(admin.describeCluster().nodes())).iterator(); i.hasNext();) {
                brokers.add(Integer.valueOf(((Node) i.next()).id()));
            }
            Map sizes = new HashMap();
            Map found = (Map) get(admin.describeLogDirs(brokers).allDescriptions());
            for (Iterator i = found.values().iterator(); i.hasNext();) {
                for (Iterator j = ((Map) i.next()).values().iterator(); j.hasNext();) {
                    LogDirDescription dir = (LogDirDescription) j.next();
                    for (Iterator k = dir.replicaInfos().entrySet().iterator(); k.hasNext();) {
                        Map.Entry entry = (Map.Entry) k.next();
                        TopicPartition partition = (TopicPartition) entry.getKey();
                        long size = ((ReplicaInfo) entry.getValue()).size();
                        Long known = (Long) sizes.get(partition);
                        if (requested.containsKey(partition.topic()) && (known == null || known.longValue() < size)) {
                            sizes.put(partition, Long.valueOf(size));
                        }
                    }
                }
            }
            return answer(sizes);
        } catch (Throwable error) {
            return failure(error);
        }
    }

    public void close() {
        if (admin != null) {
            admin.close(Duration.ofMillis(1000));
        }
    }

    private static List words(String text) {
        List words = new ArrayList();
        StringTokenizer tokens = new StringTokenizer(text, " \n");
        while (tokens.hasMoreTokens()) {
            words.add(tokens.nextToken());
        }
        return words;
    }

    private static List partitions(String text) {
        List partitions = new ArrayList();
        StringTokenizer lines = new StringTokenizer(text, "\n");
        while (lines.hasMoreTokens()) {
            StringTokenizer words = new StringTokenizer(lines.nextToken(), " ");
            String topic = words.nextToken();
            while (words.hasMoreTokens()) {
                partitions.add(new TopicPartition(topic, Integer.parseInt(words.nextToken())));
            }
        }
        return partitions;
    }

    private static String answer(Map numbers) {
        Map lines = new HashMap();
        for (Iterator i = numbers.entrySet().iterator(); i.hasNext();) {
            Map.Entry entry = (Map.Entry) i.next();
            TopicPartition partition = (TopicPartition) entry.getKey();
            StringBuilder line = (StringBuilder) lines.get(partition.topic());
            if (line == null) {
                line = new StringBuilder(partition.topic());
                lines.put(partition.topic(), line);
            }
            line.append(' ').append(partition.partition()).append(' ').append(((Long) entry.getValue()).longValue());
        }
        StringBuilder out = new StringBuilder("+");
        for (Iterator i = lines.values().iterator(); i.hasNext();) {
            out.append((CharSequence) i.next()).append('\n');
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
