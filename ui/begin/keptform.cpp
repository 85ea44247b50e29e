// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/keptform.h"

#include "core/files/atomicfile.h"
#include "ui/editor/draft.h"
#include "ui/models/workspaceid.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

namespace klineage::ui {

namespace {

constexpr int keptFormVersion = 1;
constexpr std::size_t largestKeptForm = 32u << 20;

constexpr std::pair<const char *, QString KeptForm::*> keptTexts[] = {
    {"file", &KeptForm::fileName},     {"surface", &KeptForm::surface},   {"code", &KeptForm::code},
    {"by_hand", &KeptForm::byHand},    {"workload", &KeptForm::workload}, {"name", &KeptForm::name},
    {"platform", &KeptForm::platform}, {"title", &KeptForm::title},       {"origin", &KeptForm::origin},
    {"kernel", &KeptForm::kernel},     {"grid", &KeptForm::grid},         {"block", &KeptForm::block},
    {"shared", &KeptForm::shared}};
constexpr std::pair<const char *, QStringList KeptForm::*> keptLists[] = {{"args", &KeptForm::args},
                                                                          {"tunables", &KeptForm::tunables}};

} // namespace

std::filesystem::path keptFormFile(const QString &workspaceRoot)
{
    return defaultDraftDirectory() / "new-lineages" / (workspaceId(workspaceRoot).toStdString() + ".json");
}

Status saveForm(const std::filesystem::path &file, const KeptForm &form)
{
    QJsonObject object{{QStringLiteral("version"), keptFormVersion}};
    for (const auto &[key, member] : keptTexts)
        object.insert(QLatin1String(key), form.*member);
    for (const auto &[key, member] : keptLists)
        object.insert(QLatin1String(key), QJsonArray::fromStringList(form.*member));
    std::error_code problem;
    std::filesystem::create_directories(file.parent_path(), problem);
    if (problem)
        return fail(ErrorCode::Io,
                    "Cannot create '" + file.parent_path().string() + "': " + problem.message() + '.');
    return files::writeFileAtomic(file, QJsonDocument(object).toJson().toStdString());
}

std::optional<KeptForm> loadForm(const std::filesystem::path &file)
{
    const Result<std::string> bytes = files::readFile(file, largestKeptForm);
    if (!bytes)
        return std::nullopt;
    const QJsonObject object = QJsonDocument::fromJson(QByteArray::fromStdString(*bytes)).object();
    if (object.value(QLatin1String("version")).toInt() != keptFormVersion)
        return std::nullopt;
    KeptForm form;
    for (const auto &[key, member] : keptTexts)
        form.*member = object.value(QLatin1String(key)).toString();
    for (const auto &[key, member] : keptLists) {
        for (const QJsonValue &value : object.value(QLatin1String(key)).toArray())
            (form.*member) << value.toString();
    }
    return form;
}

} // namespace klineage::ui
