package bench;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A plain consumer into nothing: each thread reads its share of a topic's partitions and adds up the values' sizes. */
public class Consume {

    /** Reads records of each partition from the beginning; returns the number of bytes of all values. */
    public long read(Map properties, String topic, int partitions, long records, int threads) throws Exception {
        Reader[] readers = new Reader[threads];
        for (int i = 0; i < threads; i++) {
            readers[i] = new Reader(properties, records);
        }
        for (int partition = 0; partition < partitions; partition++) {
            readers[partition % threads].assigned.add(new TopicPartition(topic, partition));
        }
        for (int i = 0; i < threads; i++) {
            readers[i].start();
        }
        long bytes = 0;
        for (int i = 0; i < threads; i++) {
            readers[i].join();
            bytes += readers[i].bytes;
        }
        return bytes;
    }

    static class Reader extends Thread {
        final Map properties;
        final long records;
        final List assigned = new ArrayList();
        long bytes = 0;

        Reader(Map properties, long records) {
            this.properties = properties;
            this.records = records;
        }

        public void run() {
            KafkaConsumer consumer = new KafkaConsumer(properties);
            try {
                consumer.assign(assigned);
                consumer.seekToBeginning(assigned);
                long left = records * assigned.size();
                while (left > 0) {
                    java.util.Iterator polled = consumer.poll(Duration.ofSeconds(1)).iterator();
                    while (polled.hasNext()) {
                        bytes += ((byte[]) ((ConsumerRecord) polled.next()).value()).length;
                        left--;
                    }
                }
            } finally {
                consumer.close();
            }
        }
    }
}
