// Reads a server with each method of masto.js whose route Driftline has.
//
// Usage: masto_client.mjs BASE_URL TOKEN LIST_ID EDITED_ID; prints one JSON object. A line before it
// says that the streams are open; then posts have to come.

import { createRestAPIClient, createStreamingAPIClient } from "masto";
import { WebSocket as PackagedWebSocket } from "ws";

// Node has both from version 22 on.
globalThis.WebSocket ??= PackagedWebSocket;
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

const [url, accessToken, listId, editedId] = process.argv.slice(2);
const anonymous = createRestAPIClient({ url });
const client = createRestAPIClient({ url, accessToken });
const ids = (page) => page.map((status) => status.id);

async function all(pages) {
  const found = [];
  for await (const page of pages) {
    found.push(...ids(page));
  }
  return found;
}

async function up(read) {
  const found = [];
  let minId = "0";
  for (;;) {
    const page = ids(await read({ minId, limit: 40 }));
    if (page.length === 0) {
      return found;
    }
    found.push(...page.reverse());
    minId = found.at(-1);
  }
}

/** The first update of each stream; the last two get none. */
async function streamed() {
  const instance = await anonymous.v2.instance.fetch();
  const streamingApiUrl = instance.configuration.urls.streaming;
  const streams = createStreamingAPIClient({ streamingApiUrl, accessToken });
  const subscriptions = {
    public: streams.public.subscribe(),
    remote: streams.public.remote.subscribe(),
    list: streams.list.subscribe({ list: listId }),
    local: streams.public.local.subscribe(),
    media: streams.public.media.subscribe(),
  };
  const heard = {};
  const listening = Object.entries(subscriptions).map(async ([name, events]) => {
    for await (const event of events) {
      if (event.event === "update") {
        heard[name] ??= event.payload.id;
        return;
      }
    }
  });
  console.log("streaming");
  await Promise.all(listening.slice(0, 3));
  for (const events of Object.values(subscriptions)) {
    events.unsubscribe();
  }
  streams.close();
  return { streamingApiUrl, heard };
}

const { streamingApiUrl, heard } = await streamed();
const first = await anonymous.v1.statuses.$select(heard.public).fetch();
const page = await anonymous.v1.timelines.public.list({ limit: 40 });
const maxId = page[0].id;
const publicTimeline = anonymous.v1.timelines.public;
const list = client.v1.timelines.list.$select(listId);
const down = [maxId, ...(await all(publicTimeline.list({ limit: 40, maxId })))];
const refused = await anonymous.v1.lists.list().then(
  () => false,
  (error) => error.statusCode,
);
console.log(
  JSON.stringify({
    streamingApiUrl,
    heard,
    first: first.id,
    down,
    up: await up((query) => publicTimeline.list(query)),
    since: ids(await publicTimeline.list({ sinceId: down[5], maxId })),
    remote: ids(await publicTimeline.list({ remote: true, maxId })),
    local: ids(await publicTimeline.list({ local: true })),
    media: ids(await publicTimeline.list({ onlyMedia: true })),
    list: await all(list.list({ limit: 40, maxId })),
    lists: (await client.v1.lists.list()).map((it) => [it.id, it.title]),
    one_list: (await client.v1.lists.$select(listId).fetch()).title,
    status: (await anonymous.v1.statuses.$select(down.at(-1)).fetch()).id,
    thread: await anonymous.v1.statuses
      .$select(down.at(-1))
      .context.fetch()
      .then((it) => [ids(it.ancestors), ids(it.descendants)]),
    versions: (await anonymous.v1.statuses.$select(editedId).history.list()).length,
    instances: [
      (await anonymous.v1.instance.fetch()).title,
      (await anonymous.v2.instance.fetch()).title,
    ],
    refused,
  }),
);
