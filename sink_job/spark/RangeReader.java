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
 * Reads exact offset ranges with Spark's own Kafka RDD, and converts their records to a Dataset with a function. The
 * caller assigns the ranges to tasks.
 *
 * Unlike Spark's data source, it has no admin client for each read, which would request offsets that the caller knows,
 * and no row per record. Runs in the driver.
 */
public class RangeReader {

    /**
     * A Dataset with one partition per line of plan, in order. A line has the ranges of one task, in order: topic,
     * partition, start, end (exclusive), separated by single spaces. toRows converts the iterator of a task's
     * ConsumerRecords to an iterator of rows of the schema; it runs in the executors.
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

    /** Writes a jar with these classes, a map from class name to bytes. */
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
