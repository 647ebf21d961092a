import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executors;

/** A service behind the middleware for HttpServer: answers with who asked. It asks the internal listener. */
public class Server {
    public static void main(String[] arguments) throws Exception {
        var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", new Chatelaine(URI.create(arguments[1]), (exchange, who) -> {
            var body = String.format("{\"account\":\"%s\",\"principal\":\"%s\",\"kind\":\"%s\",\"mode\":\"%s\","
                + "\"scopes\":[\"%s\"]}", who.get("account_id"), who.get("id"), who.get("kind"), who.get("mode"),
                who.get("scopes").replace(" ", "\",\"")).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) { out.write(body); }
        }));
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
