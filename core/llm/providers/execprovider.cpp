// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/providers/execprovider.h"

#include "core/llm/messagejson.h"
#include "core/process/childprocess.h"
#include "core/process/stopevent.h"

#include <cerrno>
#include <csignal>
#include <ctime>

namespace klineage::llm {

using nlohmann::json;
using process::ChildProcess;
using process::Deadline;

namespace {

constexpr std::size_t longestDetail = 4000;

/// Keeps a program that closed its stdin from ending this one: the signal is blocked in this thread, and eaten when it came.
class WithoutPipeSignal
{
public:
    WithoutPipeSignal()
    {
        sigset_t pending;
        ::sigemptyset(&m_pipe);
        ::sigaddset(&m_pipe, SIGPIPE);
        ::sigpending(&pending);
        m_wasPending = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &m_pipe, &m_before);
    }
    ~WithoutPipeSignal()
    {
        const timespec atOnce{};
        while (!m_wasPending && ::sigtimedwait(&m_pipe, nullptr, &atOnce) == -1 && errno == EINTR) {}
        ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
    }
    WithoutPipeSignal(const WithoutPipeSignal &) = delete;
    WithoutPipeSignal &operator=(const WithoutPipeSignal &) = delete;

private:
    sigset_t m_pipe;
    sigset_t m_before;
    bool m_wasPending = false;
};

/// Sends what it can without waiting. A program need not read its input: when it has closed it, that is the end of it.
void feed(ChildProcess &child, std::string_view &rest)
{
    const WithoutPipeSignal quiet;
    while (!rest.empty()) {
        const ssize_t put = ::write(child.stdinFd(), rest.data(), rest.size());
        if (put > 0) {
            rest.remove_prefix(static_cast<std::size_t>(put));
            continue;
        }
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            return;
        rest = {};
    }
    child.closeStdin();
}

/// Runs the program to its end. Its output is in child.
Result<process::ExitStatus> converse(ChildProcess &child, std::string_view input, Deadline deadline,
                                     const std::stop_token &stop, const std::string &program)
{
    const process::StopEvent stopEvent(stop);
    for (;;) {
        child.drain();
        if (const auto status = child.tryWait()) {
            child.drain();
            return *status;
        }
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The command '" + program + "' was stopped.");
        if (deadline.passed())
            return fail(ErrorCode::Timeout, "The command '" + program + "' did not answer in time.");
        if (child.stdinFd() >= 0)
            feed(child, input);
        std::vector<pollfd> fds{{stopEvent.fd(), POLLIN, 0}, {child.stdinFd(), POLLOUT, 0}};
        child.appendPollFds(fds);
        ::poll(fds.data(), fds.size(), std::min(1000, deadline.pollTimeoutMs()));
    }
}

std::string lastOf(const std::string &text)
{
    return validUtf8(text.size() > longestDetail ? std::string_view(text).substr(text.size() - longestDetail)
                                                 : std::string_view(text));
}

} // namespace

Result<Reply> parseExecOutput(std::string_view output)
{
    const std::size_t begin = output.find_first_not_of(" \t\r\n");
    Reply reply;
    reply.usageKnown = false;
    const json value = begin != std::string_view::npos && output[begin] == '{'
                           ? json::parse(output, nullptr, false)
                           : json(json::value_t::discarded);
    if (!value.is_object() || !value.contains("text")) {
        reply.text = std::string(output);
        return reply;
    }
    try {
        files::JsonReader reader(value, {});
        reply.text = reader.text("text", maxReplyBytes);
        reply.model = reader.optionalText("model", 256);
        if (const json *usage = reader.find("usage")) {
            reply.usage = readUsage(*usage, reader.pathOf("usage"));
            reply.usageKnown = true;
        }
        if (reader.find("stop")) {
            const auto stop = stopReasonFromString(reader.text("stop", 64));
            if (!stop)
                reader.refuse("stop", "is none of 'end', 'max_tokens', 'refusal' and 'other'");
            reply.stop = *stop;
        }
        reader.finish();
        return reply;
    } catch (const files::JsonFormatError &problem) {
        return fail(ErrorCode::InvalidInput, "The reply is no {\"text\": …}: " + problem.message + '.');
    }
}

ExecProvider::ExecProvider(ExecOptions options)
    : m_options(std::move(options))
{}

tl::expected<Reply, ProviderFailure> ExecProvider::ask(const Request &request, std::stop_token stop,
                                                       const TextCallback &onText)
{
    const auto refuse = [this](Error error, bool ran) {
        return tl::unexpected(ProviderFailure{std::move(error), {}, ran && m_options.paid});
    };
    if (m_options.command.empty())
        return refuse({ErrorCode::InvalidInput, "The provider 'exec' has no command.", {}}, false);
    files::OrderedJson message = toJson(request);
    message["fingerprint"] = fingerprint(request);
    const std::string input = files::oneLine(message) + '\n';
    const std::string &program = m_options.command.front();

    process::ChildOptions options;
    options.command = m_options.command;
    options.workingDirectory = m_options.workingDirectory;
    options.openStdin = true;
    options.outputCapBytes = 3 * maxReplyBytes;
    const auto began = std::chrono::steady_clock::now();
    Result<ChildProcess> child = ChildProcess::start(options);
    if (!child)
        return refuse(child.error(), false);
    const auto status = converse(*child, input, Deadline::in(m_options.timeoutSeconds), stop, program);
    if (!status)
        return refuse({status.error().code, status.error().message, lastOf(child->standardError().text)},
                      true);
    if (!status->ok())
        return refuse({ErrorCode::Protocol,
                       "The command '" + program + "' ended with " + status->describe() + '.',
                       lastOf(child->standardError().text)},
                      true);
    if (child->standardOutput().droppedBytes > 0)
        return refuse({ErrorCode::Protocol, "The command '" + program + "' wrote more than 6 MiB.", {}},
                      true);
    Result<Reply> reply = parseExecOutput(child->standardOutput().text);
    if (!reply)
        return refuse({ErrorCode::Protocol,
                       "The command '" + program + "' answered wrongly: " + reply.error().message,
                       lastOf(child->standardOutput().text)},
                      true);
    if (reply->text.find_first_not_of(" \t\r\n") == std::string::npos)
        return refuse({ErrorCode::Protocol, "The command '" + program + "' wrote nothing.",
                       lastOf(child->standardError().text)},
                      true);
    reply->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (onText)
        onText(reply->text);
    return *reply;
}

} // namespace klineage::llm
