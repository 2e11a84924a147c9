/** The service refused the call: `status` and `code` are those of its answer. */
export class PromptGatewayError extends Error {
  override readonly name: string = "PromptGatewayError";

  constructor(
    message: string,
    readonly status = 0,
    readonly code = "",
  ) {
    super(message);
  }
}

/** The service gave no usable answer: it is away, too slow or failing. Trying again later may help. */
export class UnavailableError extends PromptGatewayError {
  override readonly name = "UnavailableError";
}
