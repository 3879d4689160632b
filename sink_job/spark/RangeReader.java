package s3sink;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringTokenizer;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import scala.collection.AbstractIterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * Reads exact offset ranges from Kafka, and sends them to the Python workers of Spark's tasks past Spark's rows.
 *
 * In the driver it creates an RDD with one partition for each task. The RDD has no elements: in a task it starts a
 * RangeSender beside the task's own thread, which then waits for the results of the Python worker as for every Python
 * function.
 */
public class RangeReader extends AbstractFunction1 implements Serializable {
    private static final long serialVersionUID = 1L;
    ReaderSettings settings;

    /**
     * An RDD with one partition for each line of plan, in order. A line has the ranges of one task, in order: topic,
     * partition, start, end (exclusive), separated by single spaces.
     */
    public JavaRDD read(SparkContext context, String plan, ReaderSettings settings) {
        RangeReader reader = new RangeReader();
        reader.settings = settings;
        List tasks = new ArrayList();
        int start = 0;
        while (start < plan.length()) {
            int end = plan.indexOf('\n', start);
            tasks.add(plan.substring(start, end));
            start = end + 1;
        }
        ClassTag texts = ClassTag$.MODULE$.apply(String.class);
        ClassTag bytes = ClassTag$.MODULE$.apply(byte[].class);
        return context.parallelize(CollectionConverters.asScala(tasks).toSeq(), tasks.size(), texts)
            .mapPartitions(reader, false, bytes)
            .toJavaRDD();
    }

    /** The settings of a read. sockets: the beginning of the paths of all sockets. */
    public ReaderSettings settings(
            String sockets,
            Map client,
            long timeoutMs,
            long idleMs,
            int batchBytes,
            boolean timestamps,
            boolean keys,
            boolean headers,
            boolean timestampTypes,
            byte[] separator) {
        ReaderSettings settings = new ReaderSettings();
        settings.sockets = sockets;
        settings.client = new HashMap(client);
        settings.timeoutMs = timeoutMs;
        settings.idleMs = idleMs;
        settings.batchBytes = batchBytes;
        settings.timestamps = timestamps;
        settings.keys = keys;
        settings.headers = headers;
        settings.timestampTypes = timestampTypes;
        settings.separator = separator;
        return settings;
    }

    /** Runs on the thread of a task, before its Python worker. */
    public Object apply(Object tasks) {
        String plan = (String) ((scala.collection.Iterator) tasks).next();
        RangeSender.start(TaskContext.get(), ranges(plan), settings);
        return new NoElements();
    }

    private static List ranges(String plan) {
        List ranges = new ArrayList();
        StringTokenizer words = new StringTokenizer(plan, " ");
        while (words.hasMoreTokens()) {
            TopicPartition partition = new TopicPartition(words.nextToken(), Integer.parseInt(words.nextToken()));
            ranges.add(new OffsetRange(
                ranges.size(), partition, Long.parseLong(words.nextToken()), Long.parseLong(words.nextToken())));
        }
        return ranges;
    }
}

/** What a task has to know beside its ranges. */
class ReaderSettings implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final String FETCH = "max.partition.fetch.bytes";
    String sockets;
    HashMap client;
    long timeoutMs;
    long idleMs;
    int batchBytes;
    boolean timestamps;
    boolean keys;
    boolean headers;
    boolean timestampTypes;
    /** Bytes after each value. */
    byte[] separator;

    /** The bytes of a fetch. */
    int groupBytes() {
        return Integer.parseInt((String) client.get(FETCH));
    }

    /** The properties of a consumer of several ranges: all of them together have the bytes of a fetch. */
    Map groupClient() {
        Map properties = new HashMap(client);
        properties.put(FETCH, Integer.toString(groupBytes() / RangeGroup.MAX_RANGES));
        return properties;
    }
}

/** The offsets start (inclusive) to end (exclusive) of a topic-partition. number: its place in the task. */
class OffsetRange {
    final int number;
    final TopicPartition partition;
    final long start;
    final long end;

    OffsetRange(int number, TopicPartition partition, long start, long end) {
        this.number = number;
        this.partition = partition;
        this.start = start;
        this.end = end;
    }
}

class NoElements extends AbstractIterator {
    public boolean hasNext() {
        return false;
    }

    public Object next() {
        throw new java.util.NoSuchElementException();
    }
}
