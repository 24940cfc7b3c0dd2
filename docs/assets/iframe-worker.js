// Browsers start no Worker on a page that was opened from a folder. There the search runs in a
// hidden frame, which has a Worker's two functions and nothing else of it.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      // What is sent before the script has run waits for it.
      this.ready = new Promise((loaded) => script.addEventListener("load", () => loaded(inside)));
      inside.document.body.appendChild(script);
    }

    async postMessage(data) {
      const inside = await this.ready;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
  };
}
