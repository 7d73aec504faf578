//! Which code carries a command out.

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, Command},
    config::Config,
    error::CliError,
    logs::Log,
    reloading::Reloading,
};

/// Carries a command out.
///
/// # Errors
/// [`CliError`], which is how the process ends.
pub async fn run(cli: Cli, config: Config, log: Log) -> Result<(), CliError> {
    let json = cli.global.json;
    match cli.command {
        Command::Status(status) => Box::pin(status.run(&config, json)).await,
        Command::Serve(serve) => {
            let reloading = Reloading {
                global: cli.global,
                log,
            };
            Box::pin(serve.run(&config, json, reloading)).await
        }
        Command::Source(source) => source.run(&config, json).await,
        Command::Instance(instance) => instance.run(&config, json).await,
        Command::Mirror(mirror) => Box::pin(mirror.run(&config, json)).await,
        Command::Export(export) => export.run(&config, json).await,
        Command::Find(find) => Box::pin(find.run(&config, json)).await,
        Command::Tail(tail) => Box::pin(tail.run(&config, json)).await,
        Command::Node(node) => node.run(&config, json).await,
        Command::Credential(credential) => credential.run(&config, json).await,
        Command::Account(account) => Box::pin(account.run(&config, json)).await,
        Command::Refresh(refresh) => refresh.run(&config, json).await,
        Command::Replica(replica) => Box::pin(replica.run(&cli.global)).await,
        Command::Track(track) => Box::pin(track.run(&config, json)).await,
        Command::Hydrate(hydrate) => Box::pin(hydrate.run(&config, json)).await,
        Command::Simulate(simulate) => simulate.run(&config, json).await,
        Command::Why(why) => why.run(&config, json).await,
        Command::History(history) => history.run(&config, json).await,
        Command::Migrate(migrate) => migrate.run(&config, json).await,
        Command::Backup(backup) => Box::pin(backup.run(&config, json)).await,
        Command::Restore(restore) => Box::pin(restore.run(&config, json)).await,
        Command::Compact(compact) => compact.run(&config, json).await,
        Command::Index(index) => index.run(&config, json).await,
        Command::Id(id) => Box::pin(id.run(&config, json)).await,
        Command::Config(command) => command.run(&cli.global),
        Command::Completions(completions) => completions.run(&mut Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
        Command::Demo(demo) => Box::pin(demo.run(json)).await,
    }
}
