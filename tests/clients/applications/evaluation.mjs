// Evaluates an application that asks the gateway and answers in a tone; prints the outcome.
const { evaluate } = await import(process.argv[2]);
const { tone, fail_on, ...options } = JSON.parse(process.argv[3]);

async function application(item) {
  if (item.messages[0].content === "Question 7") {
    throw new Error("no tool for it");
  }
  const headers = { authorization: `Bearer ${options.apiKey}`, "content-type": "application/json", ...item.headers };
  const body = JSON.stringify({ model: "openai/gpt-4o", messages: item.messages });
  const response = await fetch(`${options.baseUrl}/api/gateway/v1/chat/completions`, { method: "POST", headers, body });
  const answered = await response.json();
  return { content: `${answered.choices[0].message.content} ${tone}`, model: answered.model };
}

console.log(JSON.stringify((await evaluate(application, options)).asJson()));
