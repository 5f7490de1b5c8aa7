// A Worker for pages that are opened from files, where browsers allow none: its script runs in a hidden frame.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => { this.dispatchEvent(event); if (this.onmessage) this.onmessage(event); });
      };
      const script = this.inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      this.ready = new Promise((done) => { script.onload = done; });
      this.inside.document.body.append(script);
      this.frame = frame;
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => setTimeout(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data: copy }))));
    }

    terminate() { this.frame.remove(); }
  };
}
