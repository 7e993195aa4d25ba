// Small notices for the reader, shown until they are dismissed.

type Listener = () => void;

class Notices {
  private list: readonly string[] = [];
  private readonly listeners = new Set<Listener>();

  readonly subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): readonly string[] => this.list;

  add(text: string): void {
    if (!this.list.includes(text)) this.replace([...this.list, text]);
  }

  dismiss(text: string): void {
    this.replace(this.list.filter((one) => one !== text));
  }

  private replace(list: readonly string[]): void {
    this.list = list;
    // Not within the rendering that may have added it.
    queueMicrotask(() => {
      this.listeners.forEach((listener) => {
        listener();
      });
    });
  }
}

export const notices = new Notices();
