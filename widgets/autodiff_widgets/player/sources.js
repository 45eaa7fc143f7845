/** What an element was computed from, and what was computed from it: the scene's sources, followed both ways. */

import { push, stem } from "./pictures.js";

/** @typedef {"source" | "ancestor" | "descendant"} Near */

/**
 * What follows the sources of a scene.
 * @param {Record<string, string[]>} [sources] @param {string[]} [keys] of all elements, edges among them
 */
export function lineage(sources = {}, keys = []) {
  /** @type {Map<string, string[]>} */
  let users;
  /** @param {string} key */
  const sourcesOf = (key) => sources[key] ?? sources[stem(key)] ?? [];
  /** @param {string} key */
  const usersOf = (key) => {
    if (!users) {
      users = new Map();
      for (const [user, all] of Object.entries(sources)) for (const source of all) push(users, source, user);
    }
    return users.get(key) ?? users.get(stem(key)) ?? [];
  };
  return {
    /** The direct sources of an element. @param {string} key @returns {Map<string, Near>} */
    direct: (key) => new Map(sourcesOf(key).map((source) => [source, "source"])),

    /** All that is near an element, and the edges between. @param {string | null} key @returns {Map<string, Near>} */
    near(key) {
      /** @type {Map<string, Near>} */
      const found = new Map();
      if (key === null) return found;
      for (const one of reached(key, usersOf)) found.set(one, "descendant");
      for (const one of reached(key, sourcesOf)) found.set(one, "ancestor");
      for (const one of sourcesOf(key)) found.set(one, "source");
      found.delete(key);
      if (found.size) for (const edge of keys) addEdge(found, key, edge);
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

/**
 * An edge, whose key is `source>consumer.argument`, is near where both of its ends are.
 * @param {Map<string, Near>} found @param {string} key @param {string} edge
 */
function addEdge(found, key, edge) {
  const [source, target = ""] = edge.split(">");
  if (!target) return;
  const [from, to] = [found.get(source), found.get(target.slice(0, target.lastIndexOf(".")))];
  const into = target.startsWith(`${key}.`);
  if (from && from !== "descendant" && (into || (to && to !== "descendant"))) found.set(edge, into ? "source" : "ancestor");
  if (to === "descendant" && (from === "descendant" || source === key)) found.set(edge, "descendant");
}
