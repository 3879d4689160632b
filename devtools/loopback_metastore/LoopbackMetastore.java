package org.apache.hadoop.hive.metastore;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.ql.txn.AcidHouseKeeperService;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/** Hive's metastore for tests, on loopback: its own main class listens on all interfaces. */
public class LoopbackMetastore {
    public static void main(String[] arguments) throws Exception {
        HiveConf conf = new HiveConf(HiveMetaStore.class);
        IHMSHandler handler =
            HiveMetaStore.newRetryingHMSHandler(new HiveMetaStore.HMSHandler("metastore", conf, false), conf);
        TxnDbUtil.prepDb(conf); // the tables of locks
        new AcidHouseKeeperService().start(conf); // removes locks of clients that have ended
        int port = Integer.parseInt(arguments[0]);
        TServerSocket socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        TThreadPoolServer.Args options = new TThreadPoolServer.Args(socket);
        options.processor(new TSetIpAddressProcessor(handler));
        new TThreadPoolServer(options).serve();
    }
}
