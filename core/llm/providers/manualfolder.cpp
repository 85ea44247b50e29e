// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/providers/manualfolder.h"

#include "core/files/atomicfile.h"
#include "core/llm/providers/manualdesk.h"
#include "core/process/stopevent.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <sys/stat.h>

namespace klineage::llm {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxRequestFileBytes = 2 * maxRequestBytes;

fs::path numbered(const fs::path &folder, const char *what, int number)
{
    return folder / (what + std::to_string(number) + ".md");
}

/// What changes when somebody saves the file.
struct Stamp {
    std::int64_t size = -1;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const Stamp &, const Stamp &) = default;
};

Stamp stampOf(const fs::path &file)
{
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0)
        return {};
    return {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

} // namespace

std::string requestMarkdown(const Request &request)
{
    std::string text = "# Request: " + request.purpose + "\n\n";
    if (!request.system.empty())
        text += "## System\n\n" + request.system + "\n\n";
    for (const Message &message : request.messages)
        text += (message.role == Role::User ? "## User\n\n" : "## Assistant\n\n") + message.text + "\n\n";
    return text;
}

FolderProvider::FolderProvider(fs::path folder, double settleSeconds)
    : m_folder(std::move(folder))
    , m_settleSeconds(settleSeconds)
{}

/// The number of the request's file, which is there afterwards.
Result<int> FolderProvider::place(const std::string &text)
{
    int number = m_last;
    while (fs::exists(numbered(m_folder, "request-", number + 1)))
        ++number;
    if (number > m_last) {
        const auto waiting = files::readFile(numbered(m_folder, "request-", number), maxRequestFileBytes);
        if (waiting && *waiting == text)
            return number;
    }
    ++number;
    if (Status written = files::writeFileAtomic(numbered(m_folder, "request-", number), text); !written)
        return tl::unexpected(written.error());
    return number;
}

Result<std::string> FolderProvider::waitFor(const fs::path &file, const std::stop_token &stop) const
{
    const process::StopEvent stopEvent(stop);
    const int pauseMs = std::clamp(static_cast<int>(m_settleSeconds * 250), 1, 250);
    Stamp before;
    auto since = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
        const auto now = std::chrono::steady_clock::now();
        const Stamp stamp = stampOf(file);
        if (!(stamp == before))
            since = now;
        before = stamp;
        if (stamp.size > 0 && std::chrono::duration<double>(now - since).count() >= m_settleSeconds)
            return files::readFile(file, maxReplyBytes);
        pollfd waiting{stopEvent.fd(), POLLIN, 0};
        ::poll(&waiting, 1, pauseMs);
    }
    return fail(ErrorCode::Cancelled, "Nobody waits for '" + file.string() + "' any more.");
}

tl::expected<Reply, ProviderFailure> FolderProvider::ask(const Request &request, std::stop_token stop,
                                                         const TextCallback &onText)
{
    const auto began = std::chrono::steady_clock::now();
    const Result<int> number = place(requestMarkdown(request));
    if (!number)
        return tl::unexpected(ProviderFailure{number.error(), {}, false});
    Result<std::string> text = waitFor(numbered(m_folder, "reply-", *number), stop);
    if (!text)
        return tl::unexpected(ProviderFailure{text.error(), {}, false});
    m_last = *number;
    return handwritten(std::move(*text), began, onText);
}

} // namespace klineage::llm
