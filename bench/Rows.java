package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.kafka010.KafkaOffsetRange;
import org.apache.spark.sql.kafka010.KafkaRecordToRowConverter;
import org.apache.spark.sql.kafka010.KafkaSourceRDD;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** A topic as Spark's own reader gives it, a row for each record: its Kafka RDD and its conversion, nothing around. */
public class Rows {

    /** The rows of each partition from the beginning up to its end; ends has one for each partition. */
    public Dataset read(SparkSession spark, Map params, String topic, List ends) {
        List ranges = new ArrayList();
        for (int partition = 0; partition < ends.size(); partition++) {
            long end = ((Number) ends.get(partition)).longValue();
            ranges.add(new KafkaOffsetRange(new TopicPartition(topic, partition), 0L, end, Option.empty()));
        }
        RDD records = new KafkaSourceRDD(
            spark.sparkContext(), params, CollectionConverters.asScala(ranges).toSeq(), 120000L, true);
        ClassTag rowTag = ClassTag$.MODULE$.apply(InternalRow.class);
        KafkaRecordToRowConverter converter = new KafkaRecordToRowConverter();
        return spark.internalCreateDataFrame(
            records.map(converter.toInternalRowWithoutHeaders(), rowTag),
            KafkaRecordToRowConverter.kafkaSchema(false), false);
    }
}
