package s3sink;

import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.StringTokenizer;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaSourceRDD;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * What a function makes of the records of exact offset ranges, as a Dataset, by Spark's own Kafka RDD, with the tasks
 * laid out by the caller.
 *
 * It leaves out what the data source puts around that RDD: an admin client of its own for each read, which asks the
 * brokers for what the caller knows, and a row for every record. It runs in the driver only.
 */
public class RangeReader {

    /**
     * The Dataset has a partition for each line of plan, in order. A line has the ranges that one task reads, in order:
     * topic, partition, start, end (exclusive), all separated by single blanks. toRows makes of a task's iterator of
     * ConsumerRecords one of rows of the schema; it is sent to the executors.
     */
    public Dataset read(
            SparkSession spark, Map params, String plan, long pollTimeoutMs, Function1 toRows, StructType schema) {
        SparkContext context = spark.sparkContext();
        List parts = new ArrayList();
        List single = new ArrayList();
        StringTokenizer lines = new StringTokenizer(plan, "\n");
        while (lines.hasMoreTokens()) {
            List ranges = ranges(lines.nextToken());
            if (ranges.size() == 1) {
                single.addAll(ranges);
                continue;
            }
            flush(context, params, single, pollTimeoutMs, parts);
            single = new ArrayList();
            parts.add(rdd(context, params, ranges, pollTimeoutMs).coalesce(1, false, Option.empty(), null));
        }
        flush(context, params, single, pollTimeoutMs, parts);

        RDD records = parts.size() == 1
            ? (RDD) parts.get(0)
            : context.union(seq(parts), ClassTag$.MODULE$.apply(Object.class));
        ClassTag rowTag = ClassTag$.MODULE$.apply(InternalRow.class);
        return spark.internalCreateDataFrame(records.mapPartitions(toRows, false, rowTag), schema, false);
    }

    /** Writes a jar of these classes: bytes by name. */
    public void writeJar(Map classes, String path) throws IOException {
        ZipOutputStream jar = new ZipOutputStream(new FileOutputStream(path));
        Iterator names = classes.keySet().iterator();
        while (names.hasNext()) {
            String name = (String) names.next();
            jar.putNextEntry(new ZipEntry(name.replace('.', '/') + ".class"));
            jar.write((byte[]) classes.get(name));
        }
        jar.close();
    }

    private static void flush(SparkContext context, Map params, List single, long pollTimeoutMs, List parts) {
        if (!single.isEmpty()) {
            parts.add(rdd(context, params, single, pollTimeoutMs));
        }
    }

    private static RDD rdd(SparkContext context, Map params, List ranges, long pollTimeoutMs) {
        return new KafkaSourceRDD(context, params, seq(ranges), pollTimeoutMs, true);
    }

    private static List ranges(String line) {
        List ranges = new ArrayList();
        StringTokenizer words = new StringTokenizer(line, " ");
        while (words.hasMoreTokens()) {
            TopicPartition partition = new TopicPartition(words.nextToken(), Integer.parseInt(words.nextToken()));
            long start = Long.parseLong(words.nextToken());
            long end = Long.parseLong(words.nextToken());
            ranges.add(new KafkaOffsetRange(partition, start, end, Option.empty()));
        }
        return ranges;
    }

    private static Seq seq(List list) {
        return CollectionConverters.asScala(list).toSeq();
    }
}
