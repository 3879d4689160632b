package org.apache.iceberg.rest;

import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/** Iceberg's REST server for tests, on loopback: its own main class listens on all interfaces. */
public class LoopbackCatalog {
    public static void main(String[] arguments) throws Exception {
        Method backend = RESTCatalogServer.class.getDeclaredMethod("initializeBackendCatalog", new Class[0]);
        backend.setAccessible(true);
        Object context = backend.invoke(new RESTCatalogServer(), new Object[0]);
        RESTServerCatalogAdapter adapter =
            new RESTServerCatalogAdapter((RESTCatalogServer.CatalogContext) context);
        ServletContextHandler handler = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
        handler.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
        int port = Integer.parseInt(arguments[0]);
        Server server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        server.setHandler(handler);
        server.start();
        server.join();
    }
}
