package s3sink.tests;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Kafka's own transforms, as a Connect worker applies them: one request a line on standard input, one answer a line.
 *
 * <p>A request is {"schemas": bool, "transforms": [{"class", "config", "predicate", "predicateConfig", "negate"}],
 * "records": [{"value": text or null, "topic", "partition", "offset", "timestamp", "headers": [name]}]}; the answer is a
 * list with {"value": text or null}, {"filtered": true} or {"error": text} for each record.
 */
public class ConnectTransforms {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = MAPPER.readTree(line);
            List<Object> answers = new ArrayList<>();
            String failure = null;
            List<Step> steps = new ArrayList<>();
            try {
                for (JsonNode each : request.get("transforms")) {
                    steps.add(new Step(each));
                }
            } catch (Exception error) {
                failure = String.valueOf(error);
            }
            JsonConverter converter = new JsonConverter();
            Map<String, String> settings = new HashMap<>();
            settings.put("schemas.enable", request.get("schemas").asText());
            converter.configure(settings, false);
            for (JsonNode record : request.get("records")) {
                answers.add(failure == null ? answer(converter, steps, record) : Map.of("config", failure));
            }
            out.println(MAPPER.writeValueAsString(answers));
        }
    }

    private static Map<String, Object> answer(JsonConverter converter, List<Step> steps, JsonNode record) {
        Map<String, Object> answer = new HashMap<>();
        try {
            String topic = record.get("topic").asText();
            JsonNode text = record.get("value");
            byte[] value = text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
            SchemaAndValue found = converter.toConnectData(topic, value);
            ConnectHeaders headers = new ConnectHeaders();
            for (JsonNode each : record.get("headers")) {
                headers.addString(each.asText(), "x");
            }
            JsonNode timestamp = record.get("timestamp");
            SinkRecord current = new SinkRecord(topic, record.get("partition").asInt(), null, null, found.schema(),
                    found.value(), record.get("offset").asLong(), timestamp.isNull() ? null : timestamp.asLong(),
                    TimestampType.CREATE_TIME, headers);
            for (int at = 0; at < steps.size() && current != null; at++) {
                current = steps.get(at).apply(current);
            }
            if (current == null) {
                answer.put("filtered", true);
            } else {
                byte[] result = converter.fromConnectData(topic, current.valueSchema(), current.value());
                answer.put("value", result == null ? null : new String(result, StandardCharsets.UTF_8));
            }
        } catch (Exception error) {
            answer.put("error", String.valueOf(error));
        }
        return answer;
    }

    private static Map<String, String> config(JsonNode node) {
        Map<String, String> settings = new HashMap<>();
        for (Iterator<String> names = node.fieldNames(); names.hasNext();) {
            String name = names.next();
            settings.put(name, node.get(name).asText());
        }
        return settings;
    }

    private static class Step {
        private final Transformation<SinkRecord> transform;
        private final Predicate<SinkRecord> predicate;
        private final boolean negate;

        @SuppressWarnings("unchecked")
        Step(JsonNode node) throws Exception {
            transform = (Transformation<SinkRecord>) Class.forName(node.get("class").asText()).getConstructor().newInstance();
            transform.configure(config(node.get("config")));
            negate = node.path("negate").asBoolean(false);
            if (node.hasNonNull("predicate")) {
                predicate = (Predicate<SinkRecord>) Class.forName(node.get("predicate").asText()).getConstructor().newInstance();
                predicate.configure(config(node.get("predicateConfig")));
            } else {
                predicate = null;
            }
        }

        SinkRecord apply(SinkRecord record) {
            return predicate == null || predicate.test(record) != negate ? transform.apply(record) : record;
        }
    }
}
