/** One call to the shop's API. An answer is an answer, whatever its status; Lost means that nobody can tell. */
const BASE = "/api/v1";
export const TIMEOUT_MS = 4000;

/** No reply, or none that can be read: the call may have been carried out or not. */
export class Lost extends Error {}

const cookie = (name) => document.cookie.split("; ").find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1);

/** Call and return {status, ok, code, body, retryMs}. Throws Lost. */
export async function call(method, path, { body, ticket, timeoutMs = TIMEOUT_MS } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-CSRFToken"] = cookie("csrftoken") ?? "";
  if (ticket) headers.Authorization = `Ticket ${ticket}`;
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), timeoutMs);
  try {
    const response = await fetch(BASE + path, {
      method, headers, body: body && JSON.stringify(body), signal: abort.signal, credentials: "same-origin",
    });
    return await read(response);
  } catch {
    throw new Lost(path);
  } finally {
    clearTimeout(timer);
  }
}

async function read(response) {
  const retryMs = 1000 * (Number(response.headers.get("Retry-After")) || 0);
  const isJson = (response.headers.get("Content-Type") ?? "").includes("json");
  // A proxy in front says 502 and the like in words of its own.
  const body = isJson ? await response.json() : { code: response.status >= 500 ? "unavailable" : "unreadable" };
  return { status: response.status, ok: response.ok, code: body.code, body, retryMs };
}
