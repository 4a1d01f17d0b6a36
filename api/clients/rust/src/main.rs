//! Reads a document with the client of progenitor, and stores it again as it is.

progenitor::generate_api!("openapi.json");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let archive = Client::new(&std::env::var("ODA_URL")?);
    let id = std::env::var("ODA_SBD")?;
    let read = archive.get_sbd(&id, None, None, None).await?.into_inner();
    archive.store_sbd(&id.parse()?, None, None, None, &read).await?;
    Ok(())
}
