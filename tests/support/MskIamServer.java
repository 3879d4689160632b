package s3sink.tests;

import java.io.UnsupportedEncodingException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.Provider;
import java.security.Security;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.Subject;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.spi.LoginModule;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * The broker's side of AWS_MSK_IAM, for tests: it checks the signature (version 4, as of a presigned URL) of the payload
 * that the client sends. Options of the login: `user_ID="SECRET"` for each access key, and `token` for the session token
 * that the keys of a role need.
 */
public class MskIamServer implements LoginModule {
    static final Map KEYS = new HashMap();
    private static final String PREFIX = "user_";

    static {
        Security.addProvider(new MskIamProvider());
    }

    public void initialize(Subject subject, CallbackHandler handler, Map state, Map options) {
        KEYS.putAll(options);
    }

    public boolean login() {
        return true;
    }

    public boolean commit() {
        return true;
    }

    public boolean abort() {
        return false;
    }

    public boolean logout() {
        return true;
    }

    static String secretOf(String id) {
        return (String) KEYS.get(PREFIX + id);
    }
}

class MskIamProvider extends Provider {
    MskIamProvider() {
        super("s3sink tests", 1.0, "AWS_MSK_IAM");
        put("SaslServerFactory.AWS_MSK_IAM", "s3sink.tests.MskIamServerFactory");
    }
}

class MskIamSession implements SaslServer {
    private String principal;

    public String getMechanismName() {
        return "AWS_MSK_IAM";
    }

    public byte[] evaluateResponse(byte[] response) throws SaslException {
        try {
            Map payload = (Map) new ObjectMapper().readValue(response, Map.class);
            principal = check(payload);
            String answer = "{\"version\":\"2020_10_22\",\"request-id\":\"1\"}";
            return answer.getBytes(StandardCharsets.UTF_8);
        } catch (SaslException error) {
            throw error;
        } catch (Exception error) {
            throw new SaslException("the payload cannot be read: " + error);
        }
    }

    private static String check(Map payload) throws Exception {
        String[] scope = text(payload, "x-amz-credential").split("/");
        String secret = MskIamServer.secretOf(scope[0]);
        if (secret == null) {
            throw new SaslException("[" + scope[0] + "]: unknown access key");
        }
        if (!"kafka-cluster:Connect".equals(payload.get("action")) || !"kafka-cluster".equals(scope[3])) {
            throw new SaslException("[" + scope[0] + "]: not a request to connect");
        }
        Object token = MskIamServer.KEYS.get("token");
        if (scope[0].startsWith("ASIA") && !token.equals(payload.get("x-amz-security-token"))) {
            throw new SaslException("[" + scope[0] + "]: no session token");
        }
        if (!signature(payload, scope, secret).equals(payload.get("x-amz-signature"))) {
            throw new SaslException("[" + scope[0] + "]: the signature is wrong");
        }
        return scope[0];
    }

    private static String signature(Map payload, String[] scope, String secret) throws Exception {
        TreeMap query = new TreeMap();
        query.put("Action", payload.get("action"));
        String[] names = {"Algorithm", "Credential", "Date", "Expires", "Security-Token", "SignedHeaders"};
        for (int i = 0; i < names.length; i++) {
            Object value = payload.get("x-amz-" + names[i].toLowerCase());
            if (value != null) {
                query.put("X-Amz-" + names[i], value);
            }
        }
        StringBuilder parameters = new StringBuilder();
        Iterator entries = query.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            parameters.append(parameters.length() == 0 ? "" : "&");
            parameters.append(entry.getKey()).append("=").append(encoded((String) entry.getValue()));
        }
        String request = "GET\n/\n" + parameters + "\nhost:" + text(payload, "host") + "\n\nhost\n" + digest("");
        String range = scope[1] + "/" + scope[2] + "/" + scope[3] + "/" + scope[4];
        String signed = "AWS4-HMAC-SHA256\n" + text(payload, "x-amz-date") + "\n" + range + "\n" + digest(request);
        byte[] key = ("AWS4" + secret).getBytes(StandardCharsets.UTF_8);
        for (int i = 1; i < 5; i++) {
            key = hmac(key, scope[i]);
        }
        return hex(hmac(key, signed));
    }

    private static String text(Map payload, String name) throws SaslException {
        Object value = payload.get(name);
        if (!(value instanceof String)) {
            throw new SaslException("the payload has no " + name);
        }
        return (String) value;
    }

    private static String encoded(String text) throws UnsupportedEncodingException {
        return URLEncoder.encode(text, "UTF-8").replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    private static String digest(String text) throws Exception {
        return hex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static byte[] hmac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < bytes.length; i++) {
            text.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
        }
        return text.toString();
    }

    public boolean isComplete() {
        return principal != null;
    }

    public String getAuthorizationID() {
        return principal;
    }

    public byte[] unwrap(byte[] incoming, int offset, int length) {
        throw new IllegalStateException("no security layer");
    }

    public byte[] wrap(byte[] outgoing, int offset, int length) {
        throw new IllegalStateException("no security layer");
    }

    public Object getNegotiatedProperty(String name) {
        return null;
    }

    public void dispose() {
    }
}
