package s3sink;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.InvalidOffsetException;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Sends the records of a task's ranges to its Python worker, in frames over a Unix socket.
 *
 * The socket is bound before the worker can connect, and its file is removed as soon as the worker has connected. The
 * worker detects an early end by the missing end frame; a worker that has ended closes the socket, and the sender stops.
 */
class RangeSender implements Runnable, TaskCompletionListener {
    private static final int END = -1;
    private static final int ERROR = -2;
    private static final int STOP_MS = 10000;
    private final List ranges;
    private final ReaderSettings settings;
    private final Path path;
    private final ServerSocketChannel server;
    private final Thread thread;
    private SocketChannel channel;
    private volatile boolean stopped;

    private RangeSender(TaskContext context, List ranges, ReaderSettings settings) throws IOException {
        this.ranges = ranges;
        this.settings = settings;
        this.path = Paths.get(settings.sockets + "-" + context.taskAttemptId() + ".sock");
        Files.deleteIfExists(path);
        this.server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            server.bind(UnixDomainSocketAddress.of(path));
        } catch (IOException error) {
            server.close();
            throw error;
        }
        this.thread = new Thread(this, "s3sink reader of task " + context.taskAttemptId());
        thread.setDaemon(true);
    }

    static void start(TaskContext context, List ranges, ReaderSettings settings) {
        RangeSender sender;
        try {
            sender = new RangeSender(context, ranges, settings);
        } catch (IOException error) {
            throw new UncheckedIOException("the socket of a task cannot be created: " + settings.sockets, error);
        }
        context.addTaskCompletionListener((TaskCompletionListener) sender);
        sender.thread.start();
    }

    /**
     * Called at each end of the task: stops the thread if it still runs, and removes the socket.
     *
     * A thread in accept() is ended by closing the server: an interrupt would lose a connection that is accepted at the
     * same moment, and the worker would wait for its end. Later the thread may be in a poll, which only an interrupt
     * ends, or in a write, which the closed channel ends even if a library has swallowed the interrupt.
     */
    public void onTaskCompletion(TaskContext context) {
        close();
        SocketChannel connected;
        synchronized (this) {
            stopped = true;
            connected = channel;
        }
        if (connected != null) {
            closeQuietly(connected);
            thread.interrupt();
        }
        try {
            thread.join(STOP_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public void run() {
        try {
            SocketChannel connected = server.accept();
            synchronized (this) {
                channel = connected;
            }
            close();
            if (!stopped) {
                connected.setOption(StandardSocketOptions.SO_SNDBUF, Integer.valueOf(1 << 20));
                send();
            }
        } catch (Throwable error) {
            // The worker or the task has ended, or this thread has no memory: the worker reports an early end. An
            // exception that leaves the thread would end an executor.
        } finally {
            close();
            closeQuietly(channel);
        }
    }

    private void send() throws IOException {
        List groups = RangeGroup.of(ranges, settings.groupBytes());
        Map client = groups.size() == 1 && ((RangeGroup) groups.get(0)).size() == 1
            ? settings.client : settings.groupClient();
        RangeGroup group = null;
        RangeConsumer consumer = null;
        Frame frame = new Frame(channel, settings);
        try {
            for (int i = 0; i < groups.size() && !stopped; i++) {
                group = (RangeGroup) groups.get(i);
                if (consumer == null) {
                    consumer = RangeConsumer.take(client, settings.idleMs, group);
                }
                consumer.read(group, frame);
            }
            if (consumer != null) {
                consumer.release();
                consumer = null;
            }
            frame.control(END, "");
        } catch (IOException error) {
            // The worker needs no more records. The consumer was not interrupted, so its positions are known.
            if (consumer != null && !Thread.currentThread().isInterrupted()) {
                consumer.release();
                consumer = null;
            }
            throw error;
        } catch (Throwable error) {
            if (!stopped) {
                frame.control(ERROR, description(place(group, error), error));
            }
        } finally {
            if (consumer != null) {
                consumer.close();
            }
            frame.free();
        }
    }

    /** The range that an error is about, or null if it may be about another one of the group. */
    private static OffsetRange place(RangeGroup group, Throwable error) {
        if (group != null && group.size() == 1) {
            return group.current();
        }
        if (group != null && error instanceof InvalidOffsetException) {
            Collection failed = ((InvalidOffsetException) error).partitions();
            for (int i = 0; i < group.size(); i++) {
                if (failed.contains(group.range(i).partition)) {
                    return group.range(i);
                }
            }
        }
        return null;
    }

    /** A line for where, then a line for each exception of the chain: its class and its message. */
    private static String description(OffsetRange range, Throwable error) {
        StringBuilder text = new StringBuilder();
        text.append(range == null ? "" : range.partition + " " + range.start + " " + range.end);
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            String message = String.valueOf(cause.getMessage()).replace('\n', ' ');
            text.append('\n').append(cause.getClass().getName()).append(": ").append(message);
        }
        return text.toString();
    }

    private void close() {
        closeQuietly(server);
        try {
            Files.deleteIfExists(path);
        } catch (IOException error) {
            // It is removed with the directory.
        }
    }

    private static void closeQuietly(Closeable closeable) {
        try {
            if (closeable != null) {
                closeable.close();
            }
        } catch (IOException error) {
            // Nothing is lost: it is not used again.
        }
    }
}
