// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/ledger.h"

#include "core/base/numbertext.h"
#include "core/files/utctime.h"
#include "core/llm/messagejson.h"

#include <algorithm>
#include <cmath>

namespace klineage::llm {

namespace {

using files::JsonReader;
using files::OrderedJson;
using nlohmann::json;

constexpr std::size_t maxIdBytes = 64;
constexpr std::size_t maxNoteBytes = 4096;

struct Entry {
    bool settles = false;
    std::string id;
    std::int64_t micro = 0;
    Usage usage;
};

double inDollars(std::int64_t micro)
{
    return static_cast<double>(micro) / 1e6;
}

std::string written(std::int64_t micro)
{
    return '$' + fixedText(inDollars(micro), micro % 10000 == 0 ? 2 : 6);
}

Entry readEntry(const json &value)
{
    JsonReader line(value, {});
    Entry entry;
    entry.settles = line.find("settle") != nullptr;
    const char *what = entry.settles ? "settle" : "reserve";
    JsonReader reader(line.require(what), {what});
    entry.id = reader.text("id", maxIdBytes);
    if (entry.id.empty())
        reader.refuse("id", "is empty");
    (void)reader.text("time", 64);
    entry.micro = readCount(reader, "micro_dollars", maxLedgerMicro);
    if (entry.settles) {
        entry.usage = readUsage(reader.require("usage"), reader.pathOf("usage"));
        (void)reader.optionalText("note", 4 * maxNoteBytes);
    } else {
        (void)reader.text("purpose", 4 * maxNoteBytes);
    }
    reader.finish();
    line.finish();
    return entry;
}

OrderedJson reserveEntry(const std::string &id, std::int64_t micro, const std::string &purpose)
{
    return {{"id", id},
            {"time", files::nowUtc()},
            {"micro_dollars", micro},
            {"purpose", purpose.substr(0, maxNoteBytes)}};
}

OrderedJson settleEntry(const std::string &id, std::int64_t micro, const Usage &usage,
                        const std::string &note)
{
    OrderedJson entry{
        {"id", id}, {"time", files::nowUtc()}, {"micro_dollars", micro}, {"usage", toJson(usage)}};
    if (!note.empty())
        entry["note"] = note.substr(0, maxNoteBytes);
    return entry;
}

bool isAmount(double dollars)
{
    return std::isfinite(dollars) && dollars >= 0 && dollars <= inDollars(maxLedgerMicro);
}

} // namespace

std::int64_t microDollars(double dollars)
{
    return static_cast<std::int64_t>(std::ceil(dollars * 1e6 - 1e-4));
}

Result<Ledger> Ledger::withCap(double capDollars)
{
    if (!isAmount(capDollars))
        return fail(ErrorCode::InvalidInput,
                    "Cannot open a ledger: the cap is no amount of dollars from 0 to a thousand million.");
    Ledger ledger;
    ledger.m_capMicro = static_cast<std::int64_t>(std::floor(capDollars * 1e6 + 1e-4));
    return ledger;
}

Result<Ledger> Ledger::open(const std::filesystem::path &file, double capDollars)
{
    Result<Ledger> ledger = withCap(capDollars);
    if (!ledger)
        return ledger;
    ledger->m_file = file;
    const Result<files::Lines> lines = files::readLines(file);
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return ledger;
    if (!lines)
        return tl::unexpected(lines.error());
    if (Status read = ledger->readLines(*lines, file.string()); !read)
        return tl::unexpected(read.error());
    return ledger;
}

Result<Ledger> Ledger::parse(std::string_view text, const std::string &where, double capDollars)
{
    Result<Ledger> ledger = withCap(capDollars);
    if (!ledger)
        return ledger;
    const Result<files::Lines> lines = files::splitLines(text, where);
    if (!lines)
        return tl::unexpected(lines.error());
    if (Status read = ledger->readLines(*lines, where); !read)
        return tl::unexpected(read.error());
    return ledger;
}

Status Ledger::readLines(const files::Lines &lines, const std::string &where)
{
    for (const files::Line &line : lines.lines) {
        if (Status read = readLine(line.text, where + ':' + std::to_string(line.number)); !read)
            return read;
    }
    return {};
}

Status Ledger::readLine(std::string_view line, const std::string &where)
{
    const Result<Entry> entry = files::parseJsonLine(line, where, readEntry);
    if (!entry)
        return tl::unexpected(entry.error());
    const auto refuse = [&](const std::string &why) {
        return fail(ErrorCode::InvalidInput, where + ":1: the reservation '" + entry->id + "' " + why);
    };
    const auto found = m_reservations.find(entry->id);
    if (!entry->settles) {
        if (found != m_reservations.end())
            return refuse("is there twice.");
        if (m_openMicro + m_spentMicro + entry->micro > 4 * maxLedgerMicro)
            return refuse("makes a sum that is no amount of dollars.");
        m_reservations[entry->id] = {entry->micro, false};
        m_openMicro += entry->micro;
        return {};
    }
    if (found == m_reservations.end())
        return refuse("is settled but was never made.");
    if (found->second.settled)
        return refuse("is settled twice.");
    if (entry->micro > found->second.micro)
        return refuse("is settled for more than was reserved.");
    applySettlement(found->second, entry->micro, entry->usage);
    return {};
}

void Ledger::applySettlement(Reservation &reservation, std::int64_t micro, const Usage &usage)
{
    const auto add = [](std::int64_t &sum, std::int64_t tokens) {
        constexpr std::int64_t most = std::int64_t{1} << 62;
        sum = std::min(most, sum + tokens); // a sum of counts that are each below 2^41
    };
    reservation.settled = true;
    m_openMicro -= reservation.micro;
    m_spentMicro += micro;
    add(m_usage.input, usage.input);
    add(m_usage.cacheRead, usage.cacheRead);
    add(m_usage.cacheWrite, usage.cacheWrite);
    add(m_usage.output, usage.output);
    ++m_requests;
}

double Ledger::capDollars() const
{
    return inDollars(m_capMicro);
}

double Ledger::spentDollars() const
{
    return inDollars(m_spentMicro);
}

double Ledger::reservedDollars() const
{
    return inDollars(m_openMicro);
}

double Ledger::leftDollars() const
{
    return inDollars(std::max<std::int64_t>(0, m_capMicro - m_spentMicro - m_openMicro));
}

const Usage &Ledger::usage() const
{
    return m_usage;
}

int Ledger::requests() const
{
    return m_requests;
}

bool Ledger::knows(const std::string &reservation) const
{
    return m_reservations.count(reservation) != 0;
}

bool Ledger::isOpen(const std::string &reservation) const
{
    const auto found = m_reservations.find(reservation);
    return found != m_reservations.end() && !found->second.settled;
}

Status Ledger::append(const char *what, const OrderedJson &entry) const
{
    return files::appendLine(m_file, files::oneLine(OrderedJson{{what, entry}}));
}

Result<std::string> Ledger::reserve(double dollars, const std::string &purpose)
{
    if (!isAmount(dollars))
        return fail(ErrorCode::Internal, "Cannot reserve: the request's cost is no amount of dollars.");
    const std::int64_t micro = microDollars(dollars);
    const std::int64_t left = std::max<std::int64_t>(0, m_capMicro - m_spentMicro - m_openMicro);
    if (micro > left)
        return fail(ErrorCode::Budget, "The budget of " + written(m_capMicro) + " has " + written(left)
                                           + " left; a request that can cost up to " + written(micro)
                                           + " is not sent.");
    std::size_t number = m_reservations.size() + 1;
    while (knows("r" + std::to_string(number)))
        ++number;
    const std::string id = "r" + std::to_string(number);
    // A failed append may have reached the disk all the same: its number is not used again.
    Reservation &made = m_reservations[id] = {0, true};
    if (Status appended = append("reserve", reserveEntry(id, micro, purpose)); !appended)
        return tl::unexpected(appended.error());
    made = {micro, false};
    m_openMicro += micro;
    return id;
}

Status Ledger::settle(const std::string &reservation, double dollars, const Usage &usage,
                      const std::string &note)
{
    const auto found = m_reservations.find(reservation);
    if (found == m_reservations.end() || found->second.settled)
        return fail(ErrorCode::Internal,
                    "Cannot settle: there is no open reservation '" + reservation + "'.");
    if (!isAmount(dollars) || !isSane(usage) || microDollars(dollars) > found->second.micro)
        return fail(ErrorCode::Internal,
                    "Cannot settle the reservation '" + reservation + "': more was used than reserved.");
    const std::int64_t micro = microDollars(dollars);
    if (Status appended = append("settle", settleEntry(reservation, micro, usage, note)); !appended)
        return appended;
    applySettlement(found->second, micro, usage);
    return {};
}

Status Ledger::adopt(const std::string &reservation, double dollars, const Usage &usage)
{
    if (reservation.empty() || reservation.size() > maxIdBytes || knows(reservation) || !isAmount(dollars)
        || !isSane(usage))
        return fail(ErrorCode::Internal, "Cannot adopt the reservation '" + reservation + "'.");
    const std::int64_t micro = microDollars(dollars);
    const std::string purpose = "found in the transcript";
    if (Status appended = append("reserve", reserveEntry(reservation, micro, purpose)); !appended)
        return appended;
    m_reservations[reservation] = {micro, false};
    m_openMicro += micro;
    return settle(reservation, dollars, usage);
}

} // namespace klineage::llm
