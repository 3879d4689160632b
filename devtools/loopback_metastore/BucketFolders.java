package org.apache.hadoop.hive.metastore;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** What a metastore needs of buckets for tables of Iceberg: each folder exists, and has no files. */
public class BucketFolders extends FileSystem {
    private URI uri;

    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    }

    public URI getUri() {
        return uri;
    }

    public FileStatus getFileStatus(Path path) {
        return new FileStatus(0L, true, 1, 1L, 0L, path);
    }

    public FileStatus[] listStatus(Path path) {
        return new FileStatus[0];
    }

    public boolean mkdirs(Path path, FsPermission permission) {
        return true;
    }

    public Path getWorkingDirectory() {
        return new Path(uri);
    }

    public void setWorkingDirectory(Path path) {}

    public FSDataInputStream open(Path path, int size) throws IOException {
        throw new FileNotFoundException(path.toString());
    }

    public FSDataOutputStream create(
        Path path, FsPermission permission, boolean overwrite, int size, short copies, long block, Progressable done)
        throws IOException {
        throw new IOException("no files");
    }

    public FSDataOutputStream append(Path path, int size, Progressable done) throws IOException {
        throw new IOException("no files");
    }

    public boolean rename(Path from, Path to) throws IOException {
        throw new IOException("no files");
    }

    public boolean delete(Path path, boolean recursive) throws IOException {
        throw new IOException("no files");
    }
}
