// A FastCGI server for tests, which answers each request with its parameters as JSON. One request for each connection, as
// nginx makes them without fastcgi_keep_conn.
import net from 'node:net';

const [END, PARAMS, STDIN, STDOUT] = [3, 4, 5, 6];

function record(type, content) {
  const header = Buffer.from([1, type, 0, 1, content.length >> 8, content.length & 0xff, 0, 0]);
  return Buffer.concat([header, content]);
}
/** Lengths below 128 take one byte, others four. */
function readParams(bytes) {
  const params = {};
  let at = 0;

  const length = () => {
    if (bytes[at] < 128) return bytes[at++];
    at += 4;
    return bytes.readUInt32BE(at - 4) & 0x7fffffff;
  };
  const words = (count) => bytes.toString('latin1', at, (at += count));
  while (at < bytes.length) {
    const [name, value] = [length(), length()];
    params[words(name)] = words(value);
  }
  return params;
}
export function startFastcgi() {
  return net.createServer((socket) => {
    let input = Buffer.alloc(0), params = Buffer.alloc(0);

    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      input = Buffer.concat([input, chunk]);
      while (input.length >= 8 && input.length >= 8 + input.readUInt16BE(4) + input[6]) {
        const [type, size] = [input[1], input.readUInt16BE(4)];
        const content = input.subarray(8, 8 + size);

        input = input.subarray(8 + size + input[6]);
        if (type === PARAMS) params = Buffer.concat([params, content]);
        if (type !== STDIN || size > 0) continue;
        const body = `Content-Type: application/json\r\n\r\n${JSON.stringify(readParams(params))}`;
        socket.end(Buffer.concat([record(STDOUT, Buffer.from(body)), record(STDOUT, Buffer.alloc(0)), record(END, Buffer.alloc(8))]));
      }
    });
  });
}
