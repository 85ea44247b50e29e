// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/framepipe.h"

#include "core/process/childprocess.h"
#include "core/process/stopevent.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

namespace klineage::process {

FramePipe::FramePipe(FileDescriptor socket, std::size_t limitBytes)
    : m_socket(std::move(socket))
    , m_reader(limitBytes)
{
    ::fcntl(m_socket.get(), F_SETFL, ::fcntl(m_socket.get(), F_GETFL) | O_NONBLOCK);
}

Status FramePipe::broken(Error error)
{
    m_error = std::move(error);
    return tl::unexpected(*m_error);
}

Status FramePipe::send(const nlohmann::json &message, Deadline deadline, ChildProcess *child)
{
    if (m_error)
        return tl::unexpected(*m_error);
    const auto frame = encodeFrame(message);
    if (!frame)
        return tl::unexpected(frame.error());
    std::size_t sent = 0;
    while (sent < frame->size()) {
        const ssize_t put = ::send(m_socket.get(), frame->data() + sent, frame->size() - sent, MSG_NOSIGNAL);
        if (put > 0) {
            sent += static_cast<std::size_t>(put);
            continue;
        }
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno != EAGAIN) {
            m_ended = errno == EPIPE || errno == ECONNRESET;
            return broken({ErrorCode::Protocol,
                           std::string("Cannot send to the peer process: ") + std::strerror(errno) + ".",
                           {}});
        }
        if (deadline.passed())
            return broken({ErrorCode::Timeout, "The peer process did not read its message in time.", {}});
        std::vector<pollfd> fds{{m_socket.get(), POLLOUT, 0}};
        if (child) {
            child->drain();
            child->appendPollFds(fds);
        }
        ::poll(fds.data(), fds.size(), deadline.pollTimeoutMs());
    }
    return {};
}

Result<bool> FramePipe::readSome()
{
    char buffer[65536];
    const ssize_t got = ::recv(m_socket.get(), buffer, sizeof buffer, 0);
    if (got > 0) {
        m_reader.feed({buffer, static_cast<std::size_t>(got)});
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    return tl::unexpected(endOfStream().error());
}

bool FramePipe::quiet() const
{
    char byte = 0;
    return m_reader.atBoundary() && ::recv(m_socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

Status FramePipe::endOfStream()
{
    m_ended = true;
    return broken({ErrorCode::Protocol,
                   m_reader.atBoundary() ? "The peer process closed its connection."
                                         : "The peer process ended in the middle of a message.",
                   {}});
}

Result<nlohmann::json> FramePipe::receive(Deadline deadline, ChildProcess *child, const std::stop_token &stop)
{
    const StopEvent stopEvent(stop);
    for (;;) {
        if (m_error)
            return tl::unexpected(*m_error);
        auto message = m_reader.next();
        if (!message)
            return tl::unexpected(broken(message.error()).error());
        if (*message)
            return std::move(**message);
        if (stop.stop_requested())
            return tl::unexpected(broken({ErrorCode::Cancelled, "The work was cancelled.", {}}).error());
        if (deadline.passed())
            return tl::unexpected(
                broken({ErrorCode::Timeout, "The peer process did not answer in time.", {}}).error());
        std::vector<pollfd> fds{{m_socket.get(), POLLIN, 0}, {stopEvent.fd(), POLLIN, 0}};
        if (child) {
            child->drain();
            child->appendPollFds(fds);
        }
        ::poll(fds.data(), fds.size(), deadline.pollTimeoutMs());
        const bool childEnded = child && fds.back().revents != 0;
        if (fds[0].revents == 0 && !childEnded)
            continue;
        const auto read = readSome();
        if (!read)
            return tl::unexpected(read.error());
        // A descendant may still hold the socket open, so the end of the child itself counts too.
        if (!*read && childEnded)
            return tl::unexpected(endOfStream().error());
    }
}

} // namespace klineage::process
