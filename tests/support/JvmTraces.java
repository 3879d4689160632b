package s3sink.tests;

import java.lang.management.ManagementFactory;
import java.util.Iterator;
import java.util.Set;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** What is open in this JVM, by its management beans. */
public class JvmTraces {
    /** The names of the open consumers, one a line. */
    public String consumers() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        Set names = server.queryNames(new ObjectName("kafka.consumer:type=app-info,id=*"), null);
        StringBuilder text = new StringBuilder();
        for (Iterator each = names.iterator(); each.hasNext();) {
            text.append(each.next()).append('\n');
        }
        return text.toString();
    }

    /** The bytes of direct buffers. */
    public long directBytes() throws Exception {
        ObjectName pool = new ObjectName("java.nio:type=BufferPool,name=direct");
        return ((Long) ManagementFactory.getPlatformMBeanServer().getAttribute(pool, "MemoryUsed")).longValue();
    }
}
