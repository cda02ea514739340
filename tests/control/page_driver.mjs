// Runs the page's script without a browser: node page_driver.mjs BASE_URL STEPS
// STEPS is JSON: ["wait", ID, TEXT], ["click", ID, BUTTON'S TEXT], ["type", ID, TEXT], ["event", DATA].
// Prints the text of every element with an id when all steps are done.

const [base, stepsText] = process.argv.slice(2);
const page = await (await fetch(base + "/")).text();
const script = page.match(/<script>([^]*)<\/script>/)[1];

class Node {}
class Element extends Node {
  constructor(tag) {
    super();
    Object.assign(this, { tag, children: [], value: "", hidden: false });
    this.classList = { toggle: (name, on) => { this.toggled = on; } };
  }
  append(...children) { this.children.push(...children); }
  prepend(...children) { this.children.unshift(...children); }
  replaceChildren(...children) { this.children = children; this.keepValue(); }
  keepValue() {
    if (this.tag === "select" && !this.options.some((o) => o.value === this.value))
      this.value = this.options[0]?.value ?? "";
  }
  get options() { return this.children; }
  get lastChild() { return { remove: () => this.children.pop() }; }
  set textContent(text) { this.children = [text]; }
  get text() { return this.children.map((c) => c instanceof Element ? c.text : String(c)).join(" "); }
  buttons() {
    return this.children.flatMap((c) => !(c instanceof Element) ? [] : c.tag === "button" ? [c] : c.buttons());
  }
}

const elements = {};
for (const [, tag, id] of page.matchAll(/<(\w+)[^>]* id="([^"]+)"/g))
  elements[id] = Object.assign(new Element(tag), { id });
const listeners = {};
class EventSource {
  constructor(path) { this.path = path; setTimeout(() => this.onopen(), 0); }
  addEventListener(kind, call) { listeners[kind] = call; }
}
const document = { getElementById: (id) => elements[id], createElement: (tag) => new Element(tag), hidden: true };
const problems = [];
process.on("unhandledRejection", (problem) => problems.push(String(problem)));
new Function("document", "fetch", "EventSource", "Node", "setInterval", "confirm", script)(
  document, (path, options) => fetch(base + path, options), EventSource, Node, () => 0, () => true);

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
for (const [what, id, text] of JSON.parse(stepsText)) {
  if (what === "type") elements[id].value = text;
  else if (what === "event") listeners[JSON.parse(id).kind]({ data: id });
  else if (what === "click" && elements[id].tag === "button") elements[id].onclick();
  else if (what === "click") elements[id].buttons().find((button) => button.text === text).onclick();
  else for (let i = 0; !elements[id].text.includes(text); i++) {
    if (i > 1000) throw new Error(`${id} never shows ${text}: ${elements[id].text}; ${problems}`);
    await pause();
  }
}
const shown = Object.fromEntries(Object.entries(elements).map(([id, element]) => [id, element.text]));
console.log(JSON.stringify({ shown, problems, kinds: Object.keys(listeners) }));
process.exit(0);
