// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/mcp/transport.h"

#include "core/process/stopevent.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace klineage::cli {

StdioTransport::StdioTransport()
    : m_out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))
{
    std::signal(SIGPIPE, SIG_IGN);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

StdioTransport::~StdioTransport()
{
    if (m_out >= 0)
        ::close(m_out);
}

void StdioTransport::write(const std::string &line)
{
    const std::string bytes = line + '\n';
    std::size_t done = 0;
    while (m_out >= 0 && done < bytes.size()) {
        const ssize_t count = ::write(m_out, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) { // the client has gone
            ::close(m_out);
            m_out = -1;
            return;
        }
        done += static_cast<std::size_t>(count);
    }
}

void StdioTransport::read(std::size_t most, const std::stop_token &stop,
                          const std::function<void(std::string_view, std::string_view)> &line)
{
    constexpr std::size_t keptOfTail = 4096;
    const process::StopEvent stopping(stop);
    std::array<char, 65536> buffer;
    std::string pending;
    std::string tail; // the last bytes of a line that is too long
    while (!stop.stop_requested()) {
        std::array<pollfd, 2> wait{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{stopping.fd(), POLLIN, 0}};
        if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR)
            return;
        if ((wait[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0)
            continue;
        const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count <= 0)
            return; // what is left without a newline is no message
        std::string_view rest(buffer.data(), static_cast<std::size_t>(count));
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            const std::size_t taken = std::min(end, most + 1 - std::min(pending.size(), most + 1));
            pending.append(rest.substr(0, taken));
            if (taken < end)
                tail.append(rest.substr(taken, end - taken));
            if (tail.size() > keptOfTail)
                tail.erase(0, tail.size() - keptOfTail);
            if (end == rest.size())
                break;
            rest.remove_prefix(end + 1);
            line(pending, tail);
            pending.clear();
            tail.clear();
        }
    }
}

} // namespace klineage::cli
