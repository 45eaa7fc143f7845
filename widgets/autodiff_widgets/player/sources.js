/** What leads to an element, and what follows from it: the scene's sources and the edges of its pictures, both ways. */

import { push, stem } from "./pictures.js";

/** @typedef {"source" | "ancestor" | "descendant"} Near */

/**
 * The two ends of an edge, whose key is `source>consumer.argument`; nothing for another key.
 * @param {string} key @returns {[source: string, consumer: string] | null}
 */
function endsOf(key) {
  const [source, target] = key.split(">");
  return target ? [source, target.replace(/\.\d+$/, "")] : null;
}

/**
 * What follows the ways through a scene. Where it names no sources of an element, the edges that lead there tell them. Nothing
 * is read before it is asked for.
 * @param {Record<string, string[]>} [named] @param {Iterable<string>} [keys] of all elements
 */
export function lineage(named = {}, keys = []) {
  /** @type {{key: string, source: string, consumer: string}[]} */
  let edges;
  /** @type {Map<string, string[]>} */
  let sources;
  /** @type {Map<string, string[]>} */
  let users;

  function read() {
    if (users) return;
    edges = [...keys].flatMap((key) => {
      const ends = endsOf(key);
      return ends ? [{ key, source: ends[0], consumer: ends[1] }] : [];
    });
    sources = new Map();
    for (const { source, consumer } of edges) push(sources, consumer, source);
    for (const [key, all] of Object.entries(named)) sources.set(key, all);
    users = new Map();
    for (const [user, all] of sources) for (const source of all) push(users, source, user);
  }
  /** @param {string} key */
  const sourcesOf = (key) => sources.get(key) ?? sources.get(stem(key)) ?? [];
  /** @param {string} key */
  const usersOf = (key) => users.get(key) ?? users.get(stem(key)) ?? [];

  /** An edge is near where both of its ends are. @param {Map<string, Near>} found @param {string} key */
  function addEdges(found, key) {
    for (const edge of edges) {
      const [from, to] = [found.get(edge.source), found.get(edge.consumer)];
      const into = edge.consumer === key;
      const before = from && from !== "descendant";
      if (before && (into || (to && to !== "descendant"))) found.set(edge.key, into ? "source" : "ancestor");
      if (to === "descendant" && (from === to || edge.source === key)) found.set(edge.key, to);
    }
  }

  return {
    /** The direct sources of an element. @param {string} key @returns {Map<string, Near>} */
    direct(key) {
      read();
      return new Map(sourcesOf(key).map((source) => [source, "source"]));
    },
    /** All that is near an element, and the edges between. @param {string | null} key @returns {Map<string, Near>} */
    near(key) {
      /** @type {Map<string, Near>} */
      const found = new Map();
      if (key === null) return found;
      read();
      for (const one of reached(key, usersOf)) found.set(one, "descendant");
      for (const one of reached(key, sourcesOf)) found.set(one, "ancestor");
      for (const one of sourcesOf(key)) found.set(one, "source");
      found.delete(key);
      if (found.size) addEdges(found, key);
      return found;
    },
  };
}

/** What is reached from a key, itself left out. @param {string} start @param {(key: string) => string[]} next */
function reached(start, next) {
  const found = new Set([start]);
  for (const key of found) for (const other of next(key)) found.add(other); // a Set also gives what is added on the way
  found.delete(start);
  return found;
}
