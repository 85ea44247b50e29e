// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/editor/draft.h"

#include "core/files/atomicfile.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStandardPaths>
#include <QUuid>

#include <algorithm>
#include <limits>

namespace klineage::ui {

namespace {

constexpr int formatVersion = 1;
constexpr std::size_t largestDraft = 16u << 20;

QString draftText(const char *text)
{
    return QCoreApplication::translate("DraftStore", text);
}

std::string toJson(const Draft &draft)
{
    const QJsonObject object{
        {QStringLiteral("version"), formatVersion},    {QStringLiteral("id"), draft.id},
        {QStringLiteral("lineage"), draft.lineageKey}, {QStringLiteral("parent"), draft.parentRow},
        {QStringLiteral("file"), draft.fileName},      {QStringLiteral("parent_text"), draft.parentText},
        {QStringLiteral("text"), draft.text},          {QStringLiteral("cursor"), draft.cursor}};
    return QJsonDocument(object).toJson(QJsonDocument::Indented).toStdString();
}

std::optional<Draft> fromJson(const std::string &bytes)
{
    const QJsonObject object = QJsonDocument::fromJson(QByteArray::fromStdString(bytes)).object();
    if (object.value(QStringLiteral("version")).toInt() != formatVersion)
        return std::nullopt;
    Draft draft;
    draft.id = object.value(QStringLiteral("id")).toString();
    draft.lineageKey = object.value(QStringLiteral("lineage")).toString();
    draft.parentRow = object.value(QStringLiteral("parent")).toString();
    draft.fileName = object.value(QStringLiteral("file")).toString();
    draft.parentText = object.value(QStringLiteral("parent_text")).toString();
    draft.text = object.value(QStringLiteral("text")).toString();
    draft.cursor = object.value(QStringLiteral("cursor")).toInt();
    if (draft.id.isEmpty() || draft.fileName.isEmpty())
        return std::nullopt;
    return draft;
}

} // namespace

Draft Draft::begin(const QString &lineageKey, const QString &parentRow, const QString &parentFile,
                   const QString &parentText)
{
    const QFileInfo file(parentFile);
    Draft draft;
    draft.id = QUuid::createUuid().toString(QUuid::Id128);
    draft.lineageKey = lineageKey;
    draft.parentRow = parentRow;
    draft.fileName = QStringLiteral("%1-draft.%2").arg(file.completeBaseName(), file.suffix());
    draft.parentText = parentText;
    draft.text = parentText;
    return draft;
}

DraftStore::DraftStore(std::filesystem::path directory)
    : m_directory(std::move(directory))
{}

std::filesystem::path DraftStore::fileOf(const QString &id) const
{
    return m_directory / (id.toStdString() + ".json");
}

std::vector<Draft> DraftStore::readAll(std::vector<QString> *problems) const
{
    std::vector<std::pair<std::filesystem::file_time_type, Draft>> found;
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator(m_directory, error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
        if (entry->path().extension() != ".json")
            continue;
        const auto bytes = files::readFile(entry->path(), largestDraft);
        auto draft = bytes ? fromJson(*bytes) : std::nullopt;
        std::error_code ignored;
        if (draft)
            found.emplace_back(entry->last_write_time(ignored), std::move(*draft));
        else if (problems)
            problems->push_back(
                bytes ? draftText("Cannot restore the draft %1: it is no draft of this version.")
                            .arg(QString::fromStdString(entry->path().string()))
                      : QString::fromStdString(bytes.error().message));
    }
    std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    std::vector<Draft> drafts;
    for (auto &[time, draft] : found)
        drafts.push_back(std::move(draft));
    return drafts;
}

quint64 DraftStore::nextSequence()
{
    const std::lock_guard lock(m_mutex);
    return ++m_sequence;
}

Status DraftStore::save(const Draft &draft, quint64 sequence)
{
    const std::lock_guard lock(m_mutex);
    auto newest = std::find_if(m_newest.begin(), m_newest.end(),
                               [&](const auto &entry) { return entry.first == draft.id; });
    if (newest == m_newest.end())
        newest = m_newest.insert(m_newest.end(), {draft.id, 0});
    if (newest->second >= sequence)
        return {};
    newest->second = sequence;
    std::error_code error;
    std::filesystem::create_directories(m_directory, error);
    if (error)
        return fail(ErrorCode::Io, "Cannot create the folder of drafts " + m_directory.string() + ": "
                                       + error.message() + ".");
    return files::writeFileAtomic(fileOf(draft.id), toJson(draft));
}

Status DraftStore::remove(const QString &id)
{
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_newest, [&](const auto &entry) { return entry.first == id; });
    m_newest.emplace_back(id, std::numeric_limits<quint64>::max());
    std::error_code error;
    std::filesystem::remove(fileOf(id), error);
    if (error)
        return fail(ErrorCode::Io,
                    "Cannot remove the draft " + fileOf(id).string() + ": " + error.message() + ".");
    return {};
}

std::filesystem::path defaultDraftDirectory()
{
    const QString data = QStandardPaths::writableLocation(QStandardPaths::AppDataLocation);
    return std::filesystem::path(data.toStdString()) / "drafts";
}

} // namespace klineage::ui
