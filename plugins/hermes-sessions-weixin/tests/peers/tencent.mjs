// The published client of the platform's owner, before the fake: what it reads and sends, as one JSON object.
// argv: the folder in which it is installed, the address of the fake, what to do as JSON. stdin: digits for the login.
import path from "node:path";
import { pathToFileURL } from "node:url";

const [root, server, asked] = process.argv.slice(2);
const { peer, file, markdown, quotes } = JSON.parse(asked);
const home = path.join(root, "node_modules/@tencent-weixin/openclaw-weixin/dist/src");
const load = (name) => import(pathToFileURL(path.join(home, name)).href);

// Its addresses are fixed: every host of the platform is the fake.
const fetched = globalThis.fetch;
const hosts = new Set();
globalThis.fetch = (url, options) => {
  const place = new URL(url);
  if (place.protocol === "https:") {
    hosts.add(place.host);
    url = server + place.pathname.replace(/^\/+/, "/") + place.search;
  }
  return fetched(url, options);
};
// Whatever it prints for people goes elsewhere.
const print = process.stdout.write.bind(process.stdout);
process.stdout.write = () => true;

const { startWeixinLoginWithQr, waitForWeixinLogin } = await load("auth/login-qr.js");
const { getUpdates, getConfig, sendTyping, notifyStart, notifyStop } = await load("api/api.js");
const { sendMessageWeixin, sendFileMessageWeixin, sendImageMessageWeixin } = await load("messaging/send.js");
const { uploadFileAttachmentToWeixin, uploadFileToWeixin } = await load("cdn/upload.js");
const { downloadMediaFromItem } = await load("media/media-download.js");
const { weixinMessageToMsgContext } = await load("messaging/inbound.js");
const { resolvePartialQuote } = await load("messaging/partial-quote.js");
const { StreamingMarkdownFilter } = await load("messaging/markdown-filter.js");

const found = {};
const begun = await startWeixinLoginWithQr({ accountId: "peer" });
const login = await waitForWeixinLogin({ sessionKey: begun.sessionKey });
found.login = { connected: login.connected, bot: login.accountId, user: login.userId, hosts: [...hosts] };

const account = { baseUrl: server, token: login.botToken };
found.start = await notifyStart(account);

let cursor = "";
const messages = [];
while (messages.length < 3) {
  const batch = await getUpdates({ ...account, get_updates_buf: cursor });
  cursor = batch.get_updates_buf || cursor;
  messages.push(...(batch.msgs ?? []));
}
found.messages = messages.map((one) => ({
  id: one.message_id,
  text: weixinMessageToMsgContext(one, "peer").Body,
  from: one.from_user_id,
  quoted: one.item_list[0].ref_msg?.svr_id ?? null,
}));
const saved = [];
await downloadMediaFromItem(messages[2].item_list[0], {
  cdnBaseUrl: `${server}/c2c`,
  saveMedia: async (bytes) => (saved.push(bytes.toString("utf8")), { path: "kept" }),
  log: () => {},
  errLog: (line) => saved.push(line),
  label: "peer",
});
found.medium = saved;

const token = messages[2].context_token;
const config = await getConfig({ ...account, ilinkUserId: peer, contextToken: token });
for (const status of [1, 2]) {
  await sendTyping({ ...account, body: { ilink_user_id: peer, typing_ticket: config.typing_ticket, status } });
}

const opts = { ...account, contextToken: token };
const sent = [await sendMessageWeixin({ to: peer, text: "an answer", opts })];
const upload = { filePath: file, toUserId: peer, opts, cdnBaseUrl: `${server}/c2c` };
sent.push(
  await sendFileMessageWeixin({
    to: peer, text: "", fileName: "note.txt", uploaded: await uploadFileAttachmentToWeixin(upload), opts,
  }),
);
sent.push(await sendImageMessageWeixin({ to: peer, text: "", uploaded: await uploadFileToWeixin(upload), opts }));
found.sent = sent.map((one) => one.serverMessageId);

// Until the server refuses: what then is said, and that it is said.
try {
  for (let n = 0; n < 20; n++) await sendMessageWeixin({ to: peer, text: `more ${n}`, opts });
} catch (error) {
  found.refused = String(error.message);
}
found.last = await getUpdates({ ...account, get_updates_buf: cursor, timeoutMs: 5000 });
found.stop = await notifyStop(account);

found.markdown = markdown.map((text) => {
  const filter = new StreamingMarkdownFilter();
  return filter.feed(text) + filter.flush();
});
found.quotes = quotes.map(([whole, part]) => resolvePartialQuote(whole, part) ?? null);
print(JSON.stringify(found));
process.exit(0);
