import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.joda.time.DateTime;
import org.joda.time.DateTimeZone;
import org.joda.time.Duration;
import org.joda.time.format.DateTimeFormat;
import org.joda.time.format.DateTimeFormatter;
import org.joda.time.format.ISODateTimeFormat;

/** Computes times with Joda-Time, one request per line. The reference for the partitioning code. */
public class Joda {
    private static final DateTimeFormatter ISO = ISODateTimeFormat.dateTimeParser().withZoneUTC();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t", -1));
            } catch (IllegalArgumentException | ArithmeticException error) {
                answer = "rejected";
            }
            out.println(answer);
        }
        out.flush();
    }

    private static String answer(String[] asked) {
        switch (asked[0]) {
            case "iso":
                return Long.toString(ISO.parseMillis(asked[1]));
            case "offset":
                return Integer.toString(DateTimeZone.forID(asked[1]).getOffset(Long.parseLong(asked[2])));
            case "to_utc":
                return Long.toString(DateTimeZone.forID(asked[1]).convertLocalToUTC(Long.parseLong(asked[2]), false));
            case "path":
                return path(asked[1], Long.parseLong(asked[2]), asked[3], asked[4], Long.parseLong(asked[5]));
            case "point":
                return Long.toString(point(asked[1], Long.parseLong(asked[2]), Long.parseLong(asked[3])));
            default:
                throw new IllegalStateException(asked[0]);
        }
    }

    /** The formatted start of the time bucket of a time. */
    private static String path(String zoneId, long duration, String pattern, String locale, long time) {
        DateTimeZone zone = DateTimeZone.forID(zoneId);
        long bucket = zone.convertUTCToLocal(time) / duration * duration;
        DateTimeFormatter format = DateTimeFormat.forPattern(pattern).withZone(zone).withLocale(new Locale(locale));
        return new DateTime(zone.convertLocalToUTC(bucket, false)).toString(format);
    }

    /** The next point of a schedule that restarts at each midnight. */
    private static long point(String zoneId, long period, long now) {
        DateTime start = new DateTime(now).withZone(DateTimeZone.forID(zoneId)).withTimeAtStartOfDay();
        long length = new Duration(start, start.plusDays(1)).getMillis();
        return start.getMillis() + Math.min(((now - start.getMillis()) / period + 1) * period, length);
    }
}
