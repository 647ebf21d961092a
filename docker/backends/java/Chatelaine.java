import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodySubscribers;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** Asks a node whether the key of a request is good: {@code server.createContext("/", new Chatelaine(node, handler))}. */
public record Chatelaine(URI node, Handler next) implements HttpHandler {
    /** who has account_id, id, kind, mode and scopes. (Attributes of an exchange would be shared by all requests.) */
    public interface Handler { void handle(HttpExchange exchange, Map<String, String> who) throws IOException; }

    private static final int PATIENCE_MS = 2000, ANSWER_MAX_BYTES = 65536;
    private static final Pattern BEARER = Pattern.compile("(?i:Bearer) +([A-Za-z0-9._~+/-]{1,256}={0,2})"),
        MEMBER = Pattern.compile("[{,]\"(\\w+)\":(?:\"((?:[^\"\\\\]|\\\\.)*+)\"|\\[([^\\]]*)\\]|(\\w+))"),
        ANSWER = Pattern.compile("\\{\"valid\":(true|false)(?:(?=,)" + MEMBER.pattern() + ")++\\}\\s*");
    private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
        .proxy(HttpClient.Builder.NO_PROXY).build();

    private static String quoted(String text) { // of a header or an address, which have no control characters
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private Map<String, String> ask(String question) throws Exception {
        BodyHandler<String> small = head -> head.headers().firstValueAsLong("Content-Length").orElse(ANSWER_MAX_BYTES)
            < ANSWER_MAX_BYTES ? BodySubscribers.ofString(java.nio.charset.StandardCharsets.UTF_8) : null;
        var request = HttpRequest.newBuilder(node.resolve("/check/verify")).header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(question)).build();
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        for (boolean isLast = false;; isLast = true) {
            var answer = CLIENT.sendAsync(request, small);
            try {
                var response = answer.get(until - System.nanoTime(), TimeUnit.NANOSECONDS);
                var members = new HashMap<String, String>();
                if (response.statusCode() != 200 || !ANSWER.matcher(response.body()).matches()) return members;
                for (var found = MEMBER.matcher(response.body()); found.find();)
                    members.put(found.group(1), found.group(2) != null ? found.group(2).translateEscapes()
                        : found.group(3) != null ? found.group(3).replaceAll("[\",]+", " ").strip() : found.group(4));
                return members;
            } catch (ExecutionException error) { // the node may have closed a kept connection
                if (isLast) throw error;
            } finally {
                answer.cancel(true);
            }
        }
    }

    private Map<String, String> judge(HttpExchange exchange) {
        var sent = exchange.getRequestHeaders().getOrDefault("Authorization", List.of());
        String path = exchange.getRequestURI().toString(), client = exchange.getRemoteAddress().getAddress().getHostAddress();
        var bearer = BEARER.matcher(String.join(",", sent));
        if (sent.size() > 1 || !path.startsWith("/"))
            return Map.of("status", "400", "code", "bad_request", "message", "Send Authorization once.");
        if (!bearer.matches())
            return Map.of("status", "401", "code", "missing_credentials", "message", "Send Authorization: Bearer and a key.",
                "www_authenticate", "Bearer realm=\"api\"");
        try {
            var answer = ask("{\"key\":" + quoted(bearer.group(1)) + ",\"method\":" + quoted(exchange.getRequestMethod())
                + ",\"path\":" + quoted(path) + ",\"network\":" + quoted(client.split("%")[0]) + "}");
            if ("true".equals(answer.get("valid")) || Integer.parseInt(answer.getOrDefault("status", "0")) >= 400)
                return answer;
        } catch (Exception error) {
            System.getLogger("chatelaine").log(System.Logger.Level.ERROR, "no verdict: " + error.getClass().getSimpleName());
        }
        return Map.of("status", "503", "code", "store_unavailable", "message", "Nobody can tell now whether the key is good.");
    }

    @Override public void handle(HttpExchange exchange) throws IOException {
        var answer = judge(exchange);
        if ("true".equals(answer.get("valid"))) { next.handle(exchange, answer); return; }
        var headers = exchange.getResponseHeaders();
        headers.set("Content-Type", "application/json");
        headers.set("Cache-Control", "no-store");
        if (answer.containsKey("www_authenticate")) headers.set("WWW-Authenticate", answer.get("www_authenticate"));
        var body = ("{\"error\":{\"code\":" + quoted(answer.get("code")) + ",\"message\":" + quoted(answer.get("message"))
            + "}}").getBytes(java.nio.charset.StandardCharsets.UTF_8);
        boolean isHead = exchange.getRequestMethod().equals("HEAD");
        exchange.sendResponseHeaders(Integer.parseInt(answer.get("status")), isHead ? -1 : body.length);
        try (var out = exchange.getResponseBody()) { if (!isHead) out.write(body); }
    }
}
