// vscode-jsonrpc, unchanged: requests, an error and a cancelled request over memd's socket.
const net = require("net");
const rpc = require("vscode-jsonrpc/node");

const given = (name) => JSON.parse(process.env[name]);
const socket = net.connect(process.env.E2E_SOCKET, async () => {
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(socket),
    new rpc.StreamMessageWriter(socket),
  );
  connection.listen();
  const recalled = (await connection.sendRequest("prefetch", given("E2E_RECALL"))).block;
  const refused = await connection.sendRequest("memory.read", given("E2E_ABSENT")).catch((e) => e.code === 1001);
  const saved = (await connection.sendRequest("memory.write", given("E2E_SAVE"))).path;
  const source = new rpc.CancellationTokenSource();
  const waiting = connection.sendRequest("job.wait", { job: "j999999" }, source.token).catch((e) => e.code);
  source.cancel();
  const ended = [1001, -32800].includes(await waiting);
  console.log(JSON.stringify({ recalled, refused, saved: ended && saved }));
  connection.dispose();
  socket.end();
});
