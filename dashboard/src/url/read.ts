// Reading the parameters of an address. What cannot be read is dropped, and the reader is told.

export type Raw = Record<string, unknown>;

export class Reader {
  readonly dropped: string[] = [];

  constructor(private readonly raw: Raw) {}

  private text(name: string): string | undefined {
    const value = this.raw[name];
    if (value === undefined || value === null || value === "") return undefined;
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "\0";
  }

  /** One of some words. */
  oneOf<T extends string>(name: string, options: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const found = options.find((option) => option === value);
    if (found === undefined) this.drop(name);
    return found;
  }

  /** Several of some words, separated by commas. */
  someOf<T extends string>(name: string, options: readonly T[]): T[] | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const found = value.split(",").flatMap((part) => options.filter((option) => option === part));
    if (found.length !== value.split(",").length) this.drop(name);
    return found.length > 0 ? found : undefined;
  }

  /** Any text of a bounded length. */
  words(name: string, longest = 256): string | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if (value.includes("\0") || value.length > longest) {
      this.drop(name);
      return undefined;
    }
    return value;
  }

  /** A whole number within bounds. */
  whole(name: string, least: number, most: number): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (!Number.isInteger(number) || number < least || number > most) {
      this.drop(name);
      return undefined;
    }
    return number;
  }

  /** An instant, RFC 3339. */
  instant(name: string): string | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value) || Number.isNaN(Date.parse(value))) {
      this.drop(name);
      return undefined;
    }
    return value;
  }

  private drop(name: string): void {
    this.dropped.push(name);
  }
}

/** Leave out what is not set: addresses stay short. */
export function compact<T extends Record<string, unknown>>(search: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
