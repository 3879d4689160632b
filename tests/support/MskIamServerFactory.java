package s3sink.tests;

import java.util.Map;
import javax.security.auth.callback.CallbackHandler;
import javax.security.sasl.SaslServer;
import javax.security.sasl.SaslServerFactory;

/** Creates the broker's side of AWS_MSK_IAM. */
public class MskIamServerFactory implements SaslServerFactory {
    public SaslServer createSaslServer(String mechanism, String protocol, String name, Map properties,
            CallbackHandler handler) {
        return new MskIamSession();
    }

    public String[] getMechanismNames(Map properties) {
        return new String[] {"AWS_MSK_IAM"};
    }
}
