import type { Entry } from "./service.js";

export const PASSED = 0;
export const NOT_RUN = 3;
const UNDECIDED = 2;
const EXIT_CODES: Record<string, number> = { passed: PASSED, worse: 1, undecided: UNDECIDED };

/** A run. Without an `error` or an `experiment` both versions are the same, so that there was nothing to try. */
export class Outcome {
  version: number | null = null;
  against: number | null = null;
  url: string | null = null;
  experiment: Entry | null = null;
  error: { code: string; message: string } | null = null;

  constructor(
    readonly config: string,
    readonly failOn: string,
  ) {}

  get isUnchanged(): boolean {
    return this.version !== null && this.experiment === null && this.error === null;
  }

  /** Whether the experiment completed without a baseline, so that there is no verdict. */
  get isAlone(): boolean {
    return this.error === null && this.field("state") === "completed" && this.field("baseline") === null;
  }

  get verdict(): string | null {
    return this.experiment === null || this.error !== null ? null : (this.experiment["verdict"] ?? null);
  }

  get exitCode(): number {
    if (this.isUnchanged || this.isAlone) {
      return PASSED;
    }
    const code = EXIT_CODES[this.verdict ?? ""] ?? NOT_RUN;
    return code === UNDECIDED && this.failOn === "worse" ? PASSED : code;
  }

  get title(): string {
    return this.version === null ? this.config : `${this.config} ${this.version} against ${this.against}`;
  }

  /** The part of the report that is about the version that was tried. */
  get target(): Entry | null {
    return this.field("report")?.["targets"]?.[0] ?? null;
  }

  field(name: string): any {
    return this.experiment?.[name] ?? null;
  }

  asJson(): Entry {
    return {
      verdict: this.verdict,
      exit_code: this.exitCode,
      config: this.config,
      version: this.version,
      against: this.against,
      unchanged: this.isUnchanged,
      experiment_id: this.field("id"),
      url: this.url,
      dataset: this.field("dataset"),
      cost_usd: this.field("spent_usd"),
      report: this.field("report"),
      error: this.error,
    };
  }
}
