// What a screen reader is told of live changes: politely, the latest only, at most one message in five seconds.

const PAUSE = 5000;
type Say = (text: string) => void;

export class Announcer {
  private waiting: string | null = null;
  private last = -PAUSE;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private say: Say = () => undefined;

  constructor(private readonly monotonic: () => number = () => performance.now()) {}

  connect(say: Say): () => void {
    this.say = say;
    return () => {
      this.say = () => undefined;
    };
  }

  announce(text: string): void {
    this.waiting = text;
    if (this.timer !== null) return;
    const left = Math.max(this.last + PAUSE - this.monotonic(), 0);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.last = this.monotonic();
      if (this.waiting !== null) this.say(this.waiting);
      this.waiting = null;
    }, left);
  }
}

export const announcer = new Announcer();
