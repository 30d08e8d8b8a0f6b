// A client of somebody else's: the protocol's TypeScript SDK, which holds results to the schemas that tools
// publish. It is given an endpoint and a token, and prints what it saw as one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [endpoint, token] = process.argv.slice(2);
const client = new Client({ name: 'node', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(endpoint), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
const { tools } = await client.listTools();
const allowed = await client.callTool({ name: 'kb__page_read__1', arguments: { n: 1 } });
const denied = await client.callTool({ name: 'kb__page_write__1', arguments: {} });
const failed = await client.callTool({ name: 'kb__page_read__1', arguments: { n: 'one' } });
let progress = 0;
await client.callTool({ name: 'kb__page_read__1', arguments: {} }, undefined, { onprogress: () => { progress++; } });
let unknown = '';
try {
  await client.callTool({ name: 'no such tool', arguments: {} });
} catch (e) {
  unknown = String(e.code);
}
console.log(JSON.stringify({
  server: client.getServerVersion().name,
  tools: tools.map((t) => t.name),
  allowed: allowed.structuredContent,
  denied: denied.isError && denied._meta['ecotone/denial'].code,
  failed: failed.isError && JSON.parse(failed.content[0].text).code,
  progress,
  unknown,
}));
await client.close();
