// vscode-jsonrpc, unchanged: a request, an error and a cancelled request over memd's socket.
const net = require("net");
const rpc = require("vscode-jsonrpc/node");

const [socketPath, cwd] = process.argv.slice(2);
const socket = net.connect(socketPath, async () => {
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(socket),
    new rpc.StreamMessageWriter(socket),
  );
  connection.listen();
  const hello = await connection.sendRequest("hello", { client: "vscode-jsonrpc" });
  const loaded = await connection.sendRequest("load_prompt", { cwd });
  const refused = await connection.sendRequest("memory.read", { cwd, path: "no.md" }).catch((e) => e.code);
  const source = new rpc.CancellationTokenSource();
  const waiting = connection.sendRequest("job.wait", { job: "j999999" }, source.token).catch((e) => e.code);
  source.cancel();
  console.log(JSON.stringify({ name: hello.name, prompt: loaded.prompt.length, refused, waiting: await waiting }));
  connection.dispose();
  socket.end();
});
