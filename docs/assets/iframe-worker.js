// Search runs in a worker, which browsers refuse to pages that are opened from a file: there a hidden frame stands in.
// The theme would fetch such a script from a network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          inside.document.body.append(script);
        });
      inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      const ready = load(String(url));
      this.postMessage = (data) => ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
}
