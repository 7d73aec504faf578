// Reads what an account may with each method of masto.js whose route Driftline has.
//
// Usage: reading_client.mjs BASE_URL PASSPHRASE; logs in as ann@mail.example and bob@mail.example, and prints one
// JSON object. A line before it says that the stream is open; then posts of all authors have to come.

import { createRestAPIClient, createStreamingAPIClient } from "masto";
import { WebSocket as PackagedWebSocket } from "ws";

// Node has both from version 22 on.
globalThis.WebSocket ??= PackagedWebSocket;
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

const [url, passphrase] = process.argv.slice(2);
const ids = (page) => page.map((it) => it.id);

async function logIn(username) {
  const app = await createRestAPIClient({ url }).v1.apps.create({
    clientName: "reader",
    redirectUris: "urn:ietf:wg:oauth:2.0:oob",
    scopes: "read write follow",
  });
  const answer = await fetch(`${url}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "password",
      client_id: app.clientId,
      client_secret: app.clientSecret,
      scope: "read write follow",
      username,
      password: passphrase,
    }),
  });
  return (await answer.json()).access_token;
}

async function all(pages) {
  const found = [];
  for await (const page of pages) {
    found.push(...page);
  }
  return found;
}

const accessToken = await logIn("ann@mail.example");
const ann = createRestAPIClient({ url, accessToken });
const bob = createRestAPIClient({ url, accessToken: await logIn("bob@mail.example") });

const page = await ann.v1.timelines.public.list({ limit: 40 });
const maxId = page[0].id;
const author = page[1].account;
const ofAuthor = ann.v1.accounts.$select(author.id);
const me = await ann.v1.accounts.verifyCredentials();
const before = ids(await ann.v1.timelines.home.list());
const followed = (await ofAuthor.follow()).following;

const instance = await ann.v2.instance.fetch();
const streams = createStreamingAPIClient({
  streamingApiUrl: instance.configuration.urls.streaming,
  accessToken,
});
const events = streams.user.subscribe();
console.log("streaming");
let told;
for await (const event of events) {
  if (event.event === "update") {
    told = event.payload.account.id;
    break;
  }
}
events.unsubscribe();
streams.close();

const down = await all(ann.v1.timelines.public.list({ maxId, limit: 40 }));
const home = await all(ann.v1.timelines.home.list({ maxId, limit: 40 }));
const [first, second] = home;
await ann.v1.markers.create({ home: { lastReadId: first.id } });
const search = async (q) => {
  const found = ann.v2.search;
  return found.list ? await found.list({ q }) : await found.fetch({ q });
};
const read = {
  author: author.id,
  before,
  followed,
  told,
  down: down.map((it) => [it.id, it.account.id]),
  home: ids(home),
  of_author: ids(await all(ofAuthor.statuses.list({ maxId, limit: 40 }))),
  found: [
    (await ofAuthor.fetch()).acct === author.acct,
    (await ann.v1.accounts.lookup({ acct: author.acct })).id,
    ids(await ann.v1.accounts.search.list({ q: author.acct })),
    ids((await search(author.acct)).accounts),
    ids((await search(first.url)).statuses)[0] === first.id,
  ],
  following: ids(await ann.v1.accounts.$select(me.id).following.list()),
  relationship: (await ann.v1.accounts.relationships.fetch({ id: [author.id] }))[0].following,
  tagged: ids(await ann.v1.timelines.tag.$select("nothing").list()),
  thread: Object.values(await ann.v1.statuses.$select(first.id).context.fetch()).map(
    (it) => it.length,
  ),
  marker: (await ann.v1.markers.fetch({ timeline: ["home"] })).home.lastReadId === first.id,
  empty: [
    await ann.v1.customEmojis.list(),
    await ann.v1.announcements.list(),
    await ann.v1.followedTags.list(),
    await ann.v1.domainBlocks.list(),
    await ann.v1.instance.rules.list(),
    await ofAuthor.featuredTags.list(),
    await ann.v1.trends.tags.list(),
    await ann.v1.trends.statuses.list(),
    await ann.v1.trends.links.list(),
    await ann.v1.conversations.list(),
    await ann.v1.scheduledStatuses.list(),
    await ann.v1.suggestions.list(),
    await ann.v2.suggestions.list(),
    await ann.v1.endorsements.list(),
    await ann.v1.featuredTags.list(),
    await ann.v1.featuredTags.suggestions.list(),
    await ann.v1.directory.list(),
    await ann.v1.instance.activity.list(),
    await ann.v1.statuses.$select(first.id).rebloggedBy.list(),
  ],
  several: [
    ids(await ann.v1.statuses.list({ id: [second.id, first.id] })).join() ===
      [second.id, first.id].join(),
    ids(await ann.v1.accounts.list({ id: [author.id] })),
  ],
  tag: (await ann.v1.tags.$select("nothing").fetch()).name,
  preferences: (await ann.v1.preferences.fetch())["posting:default:visibility"],
  app: (await ann.v1.apps.verifyCredentials()).name,
};

const ofFirst = ann.v1.statuses.$select(first.id);
const ofSecond = ann.v1.statuses.$select(second.id);
await ofFirst.bookmark();
await ofFirst.favourite();
await ofSecond.favourite();
const status = await ofFirst.fetch();
read.bookmarks = ids(await ann.v1.bookmarks.list());
read.favourites = ids(await ann.v1.favourites.list());
read.favourited_by = (await ofFirst.favouritedBy.list()).map((it) => it.acct);
read.marked = [status.bookmarked, status.favourited];
await ofFirst.unbookmark();
await ofFirst.unfavourite();
await ofSecond.unfavourite();
read.unmarked = [...(await ann.v1.bookmarks.list()), ...(await ann.v1.favourites.list())];

const word = first.content.replace(/<[^>]*>/g, " ").match(/\w{3,}/)[0];
const filter = await ann.v2.filters.create({
  title: "words",
  context: ["home"],
  filterAction: "warn",
  keywordsAttributes: [{ keyword: word, wholeWord: true }],
});
const [shown] = await ann.v1.timelines.home.list({ maxId, limit: 1 });
read.filters = (await ann.v2.filters.list()).map((it) => it.title);
read.keywords = (await ann.v2.filters.$select(filter.id).keywords.list()).map(
  (it) => it.keyword === word,
);
read.filtered = shown.filtered.map((it) => it.filter.title);
await ann.v2.filters.$select(filter.id).remove();

const list = await ann.v1.lists.create({ title: "few" });
const ofList = ann.v1.lists.$select(list.id);
await ofList.accounts.create({ accountIds: [author.id] });
read.lists = (await ann.v1.lists.list()).map((it) => it.title);
read.members = ids(await ofList.accounts.list());
read.lists_of = (await ofAuthor.lists.list()).map((it) => it.title);
read.listed = ids(await all(ann.v1.timelines.list.$select(list.id).list({ maxId, limit: 40 })));

await bob.v1.accounts.$select(me.id).follow();
read.notified = (await ann.v1.notifications.list()).map((it) => [it.type, it.account.acct]);
read.unread = (await ann.v1.notifications.unreadCount.fetch()).count;
const results = await ann.v2.notifications.list();
const [group] = results.notificationGroups;
const ofGroup = ann.v2.notifications.$select(group.groupKey);
const groupAccounts = await ofGroup.accounts.fetch();
read.grouped = [
  [group.type, group.notificationsCount, results.accounts[0].acct],
  ids(groupAccounts).join() === group.sampleAccountIds.join(),
  (await ofGroup.fetch()).notificationGroups[0].groupKey === group.groupKey,
  (await ann.v2.notifications.unreadCount.fetch()).count,
  (await ann.v2.notifications.policy.fetch()).forNotFollowing,
];
read.followers = (await ann.v1.accounts.$select(me.id).followers.list()).map((it) => it.acct);
read.requests = await ann.v1.followRequests.list();
await ofAuthor.mute();
read.mutes = ids(await ann.v1.mutes.list());
await ofAuthor.unmute();
await ofAuthor.block();
read.blocks = ids(await ann.v1.blocks.list());
await ofAuthor.unblock();
await ofAuthor.unfollow();
read.after = ids(await ann.v1.timelines.home.list());
read.others = [
  await bob.v1.bookmarks.list(),
  await bob.v1.lists.list(),
  await bob.v2.filters.list(),
  await bob.v1.timelines.home.list(),
];
console.log(JSON.stringify(read));
